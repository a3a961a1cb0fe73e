"""Whether a candidate pair is a duplicate pair."""
