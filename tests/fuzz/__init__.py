"""Untrusted bytes against codec, log reader and detection: ``python -m tests.fuzz TARGET``."""
