"""Candidates, pairs and groups of a whole table."""
