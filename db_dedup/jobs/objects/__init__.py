"""The views and triggers of one watched table."""
