"""The HTTP service, `db-dedup serve`. Only `db_dedup.web.server` is imported from outside, when it starts."""
