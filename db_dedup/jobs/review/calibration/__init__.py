"""Calibration: which duplicates each setting finds, judged by labelled pairs, and which setting is best."""

from db_dedup.jobs.review.calibration.calibrate import calibrate as calibrate
