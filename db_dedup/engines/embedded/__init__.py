"""This process and the database it talks to: the default engine, the faster one below 1e8 fingerprints."""
