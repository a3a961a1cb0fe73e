"""Pages on which people review duplicate groups in a browser."""
