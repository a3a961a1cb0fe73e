"""What runs for minutes."""
