"""Comparison: how well the methods of other papers, and the product's own rules, judge labelled pairs."""

from db_dedup.jobs.review.comparison.compare import compare_pairs as compare_pairs
from db_dedup.jobs.review.comparison.labelled_rows import labelled_rows as labelled_rows
from db_dedup.jobs.review.comparison.labelled_rows import labelled_texts as labelled_texts
