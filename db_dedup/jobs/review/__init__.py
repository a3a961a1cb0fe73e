"""Labels and calibration."""
