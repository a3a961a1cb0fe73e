"""Weighted features of words and character n-grams."""
