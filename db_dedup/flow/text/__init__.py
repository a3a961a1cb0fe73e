"""A text normalised and cut into tokens."""
