"""The pure steps, a module per arrow: text, tokens, features, fingerprint, candidates, similarity, groups.

Nothing here knows a database. Each step works on whole batches, because past segmentation the interpreter is
the ceiling, and none imports another: `db_dedup.engines` composes them.
"""
