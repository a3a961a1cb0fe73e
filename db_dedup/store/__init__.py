"""Reads and writes: of our tables, and (only reads) of the user's. SQLAlchemy Core throughout."""
