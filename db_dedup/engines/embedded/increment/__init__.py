"""Incremental processing: update the answer around the changed rows, to what a full scan would find now."""

from db_dedup.engines.embedded.increment.increment import EmbeddedIncrement as EmbeddedIncrement
