"""Why two rows are a duplicate pair, or why not."""
