"""Strangers' bytes against the codec, the log reader and the sniffing readers: ``python -m tests.fuzz TARGET --seconds 20``."""
