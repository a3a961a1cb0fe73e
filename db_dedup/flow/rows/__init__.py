"""Rows before their text is read: typed keys, receipt order, canonical values, digests."""
