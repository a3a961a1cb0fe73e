"""A petition office: an application of FastAPI and SQLAlchemy that shows how to use db_dedup."""
