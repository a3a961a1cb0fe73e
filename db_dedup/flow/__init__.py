"""The pure steps, one package each: rows, text, features, fingerprints, candidates, compare, matching.

`pipeline` and `matching` combine them, and `db_dedup.engines` runs them on the rows of a database. No step
uses a database. Each step works on whole batches, because Python's interpreter would be too slow for one row
at a time.
"""
