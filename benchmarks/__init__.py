"""Figures of the README and docs: each is printed by one of these modules. `python -m benchmarks --help`."""

DATABASES = ("SQLite", "PostgreSQL", "MariaDB")
"""On which benchmarks of databases run. Here, so that others need none of the drivers."""
