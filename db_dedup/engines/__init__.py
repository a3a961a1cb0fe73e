"""Who runs the flow. `embedded` is this process and the database it talks to."""
