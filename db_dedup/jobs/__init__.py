"""Long-running operations on one table: scan, worker, verify, review, triggers and views."""
