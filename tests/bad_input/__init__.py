"""Whatever is wrong is told in one line, and nothing is lost by it."""
