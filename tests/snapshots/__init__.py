"""What users rely on, as text: ``python -m tests.snapshots`` writes it anew after a change that is meant."""
