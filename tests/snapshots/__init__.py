"""The public surface as text; ``python -m tests.snapshots`` writes it after an intended change."""
