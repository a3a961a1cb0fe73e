"""Rows as they are in the fingerprint table, and where the four blocks are in a fingerprint."""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

BLOCK_BITS: Final = 16
BLOCK_SHIFTS: Final = (48, 32, 16, 0)
"""The positions of blocks 1 to 4 in a fingerprint: block = (fingerprint >> shift) & 65535."""

DigestPair = tuple[bytes, bytes]
"""Digests of two texts, the smaller first."""


class AnswerColumns(NamedTuple):
    """The stored links and groups of n rows. Each column is int64[n]; NULL is -1."""

    ids: NDArray[np.int64]
    copy_of: NDArray[np.int64]
    group_id: NDArray[np.int64]
    is_loose: NDArray[np.int64]
    is_abridged: NDArray[np.int64]
    group_size: NDArray[np.int64]


class RowFingerprint(NamedTuple):
    """What is stored of a row.

    Attributes:
        fingerprint: unsigned; None where there is too little text.
        form: the number of its form (`records.forms`); None where the normaliser knows no forms.
        sketch_size: how many hashes its sketch has; None if the size is not to be stored with the row.
        feature_set: its features as `flow.compare.feature_sets` packs them; None if it has no set.
    """

    row_key: str
    order_value: str | None
    fingerprint: int | None
    digest: bytes
    form: int | None = None
    sketch_size: int | None = None
    feature_set: bytes | None = None


class StoredFingerprint(NamedTuple):
    """A row as it is in the fingerprint table, with its id there."""

    id: int
    order_value: str | None
    fingerprint: int | None
    digest: bytes
    form: int | None

    def is_of(self, row: RowFingerprint) -> bool:
        """Whether the row is as it was stored."""
        return _is_same(self, row)


class AnswerRow(NamedTuple):
    """A stored row, its canonical row and its group; ids are those of the fingerprint table."""

    id: int
    row_key: str
    order_value: str | None
    fingerprint: int | None
    digest: bytes
    form: int | None
    copy_of: int | None
    group_id: int | None
    is_loose: bool | None
    is_abridged: bool | None
    group_size: int | None

    def is_of(self, row: RowFingerprint) -> bool:
        """Whether the row is as it was stored."""
        return _is_same(self, row)

    def updated(self, row: RowFingerprint) -> "AnswerRow":
        """Return the row with the order value, fingerprint, digest and form of `row`."""
        return self._replace(
            order_value=row.order_value, fingerprint=row.fingerprint, digest=row.digest, form=row.form
        )


def _is_same(stored: StoredFingerprint | AnswerRow, row: RowFingerprint) -> bool:
    return (stored.order_value, stored.fingerprint, stored.digest, stored.form) == (
        row.order_value,
        row.fingerprint,
        row.digest,
        row.form,
    )


def digest_pair(one: bytes, other: bytes) -> DigestPair:
    """Return two digests in the order in which labels are kept by them."""
    return (one, other) if one < other else (other, one)
