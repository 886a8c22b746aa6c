"""The quick tests in Python for WebAssembly: numpy's integers have 32 bits there."""
