"""Figures of the README and docs: each is printed by one of these modules. `python -m benchmarks --help`."""
