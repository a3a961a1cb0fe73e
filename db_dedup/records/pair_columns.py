"""Many duplicate pairs at once, column by column, so that listing them needs no object for each pair."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

from db_dedup.records import DuplicatePair
from db_dedup.records.forms import Form
from db_dedup.records.kinds import ALL_PAIRS, Kind, PairFilter


@dataclass(frozen=True)
class PairColumns:
    """p pairs: each attribute has p values, those that `DuplicatePair` has under the same name."""

    key_a: Sequence[str]
    key_b: Sequence[str]
    distance: Sequence[int]
    similarity: Sequence[float | None]
    kind: Sequence[Kind | None]
    contained_key: Sequence[str | None]
    other_place: Sequence[bool | None]
    form: Sequence[Form | None]

    @property
    def count(self) -> int:
        """How many pairs there are."""
        return len(self.key_a)

    def values(self, names: Sequence[str]) -> list[Sequence[Any]]:
        """Return the columns that have these names."""
        return [getattr(self, name) for name in names]

    def pairs(self) -> Iterator[DuplicatePair]:
        """Yield the pairs one by one."""
        return map(DuplicatePair, *self._all())

    def first(self, count: int) -> "PairColumns":
        """Return at most the first `count` pairs."""
        return PairColumns(*(column[:count] for column in self._all()))

    def wanted(self, wanted: PairFilter) -> "PairColumns":
        """Return the pairs that a filter wants."""
        if wanted == ALL_PAIRS:
            return self
        is_wanted = list(map(wanted.wants, self.kind, self.other_place))
        return PairColumns(*(list(compress(column, is_wanted)) for column in self._all()))

    def _all(self) -> tuple[Sequence[Any], ...]:
        return (
            self.key_a,
            self.key_b,
            self.distance,
            self.similarity,
            self.kind,
            self.contained_key,
            self.other_place,
            self.form,
        )


def limited(parts: Iterable[PairColumns], limit: int | None) -> Iterator[PairColumns]:
    """Yield the first `limit` pairs, or all of them; no more parts are taken than it needs."""
    left = limit
    for part in parts:
        if left is None:
            yield part
            continue
        yield part if part.count <= left else part.first(left)
        left -= part.count
        if left <= 0:
            return
