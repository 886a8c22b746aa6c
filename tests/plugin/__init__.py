"""A format of a third party, as a package of its own would have it."""
