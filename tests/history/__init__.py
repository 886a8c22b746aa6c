"""The store of runs, its gate and its views."""
