"""Duplicates without a database: in files (CSV, Excel, Parquet) and in data frames."""
