"""Benchmarks: ours and peers side by side in one run. They print ratios; they assert nothing."""
