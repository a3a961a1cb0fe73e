"""Candidate generators: which pairs of rows are compared."""
