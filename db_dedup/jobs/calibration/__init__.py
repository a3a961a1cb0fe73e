"""What labelled pairs say of the settings of a table: which find what, and which to choose."""

from db_dedup.jobs.calibration.calibrate import calibrate as calibrate
