"""The pure steps, a package for each: text, tokens, features, fingerprint, candidates, similarity, groups.

No step uses a database. Each step works on whole batches, because Python's interpreter would be too slow for
one row at a time. `db_dedup.engines` combines the steps.
"""
