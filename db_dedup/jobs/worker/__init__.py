"""Incremental processing and scheduled scans."""
