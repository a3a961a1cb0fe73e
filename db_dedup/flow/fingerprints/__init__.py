"""64-bit SimHash fingerprints."""
