"""Checks of the objects that a SQLAlchemy session is going to store."""
