"""The experiments of the five papers, on data at hand or generated at their size."""
