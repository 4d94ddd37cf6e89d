"""Benchmarks of deciban beside its peers: ``python -m benchmarks``. See README.md and harness.py."""
