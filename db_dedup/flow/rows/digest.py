"""The digest of a row, by which exact duplicates are found."""

import hashlib
from collections.abc import Sequence
from typing import Final

_DIGEST_BYTES: Final = 16

NO_FEATURES_DIGEST: Final = bytes(_DIGEST_BYTES)
"""Digest of a row without any feature: such rows are never exact duplicates of each other."""


def digest_columns(columns: Sequence[Sequence[str]], within: Sequence[str | None] | None) -> list[bytes]:
    """Return the digest of each row's columns and `within` text, so that exact duplicates agree in both.

    The control characters that separate the columns count as white space, so no normalised text has them.
    """
    must_agree = within or [None] * len(columns[0])
    return [
        _digest("\x1f".join(texts) + f"\x1e{agree}")
        for texts, agree in zip(zip(*columns, strict=True), must_agree, strict=True)
    ]


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).digest()
