"""A watched table, and what a person with paper and pencil would note of its groups after each step."""

from __future__ import annotations

from collections import Counter
from typing import Any

from sqlalchemy import delete, insert, select, update

from db_dedup import Deduplicator, Text
from db_dedup.jobs.worker.table_worker import TableWorker
from tests.worker.history import BASES
from tests.worker.watched import Watched

Partition = dict[str, str]
"""Row key -> group id, of the rows in groups."""
Noted = tuple[str, str | None, str, int, int, int | None]
"""Group id, new group id, kind, size, rows that are in the new group, size of the new group."""

LAMPS, WATER, NOISE = (" ".join(words) for words in BASES)
BODIES = (
    *(LAMPS, LAMPS + " please", "urgent " + LAMPS, WATER, WATER + " please", "urgent " + WATER),
    *(f"{LAMPS} {WATER}", NOISE, NOISE + " please", f"{WATER} {NOISE}", "nothing like the others at all"),
)
"""Copies, near-duplicates of three families, texts that connect two of them, a stranger."""

OTHER_SETTINGS: tuple[dict[str, Any], ...] = (
    {"similarity": "word_jaccard", "threshold": 0.95},
    {"preset": "strict", "similarity": None, "threshold": None, "radius": None, "sketches": None},
    {"within": "region"},
)


class Recorded:
    """A watched table that is changed step by step.

    Attributes:
        seen: the groups after each step, in order.
        noted: by comparison of these, what became of groups in each step.
    """

    def __init__(self, watched: Watched) -> None:
        self.watched = watched
        watched.empty()
        watched.dedup.scan()
        self.seen: list[Partition] = [{}]
        self.noted: list[list[Noted]] = []
        self._worker: TableWorker | None = None

    @property
    def dedup(self) -> Deduplicator:
        """The table by its stored settings."""
        return Deduplicator(self.watched.dedup.database, self.watched.letters.name)

    def write(self, number: int, body: str, received: int | None = None) -> None:
        """Insert a row, or give it another text."""
        table = self.watched.letters
        values = {
            "body": body,
            "region": "AB"[number % 2],
            "received": number if received is None else received,
        }
        with self.watched.dedup.database.engine.begin() as connection:
            found = connection.execute(update(table).where(table.c.id == number).values(values))
            if not found.rowcount and not connection.execute(select(table).where(table.c.id == number)).all():
                connection.execute(insert(table).values(id=number, **values))

    def delete(self, *numbers: int) -> None:
        table = self.watched.letters
        with self.watched.dedup.database.engine.begin() as connection:
            connection.execute(delete(table).where(table.c.id.in_(numbers)))

    def move(self, number: int, other: int) -> None:
        """Give a row the key of another one, which is deleted."""
        self.delete(other)
        table = self.watched.letters
        with self.watched.dedup.database.engine.begin() as connection:
            connection.execute(update(table).where(table.c.id == number).values(id=other))

    def work(self) -> None:
        """Let a worker handle all changes, a few in each transaction."""
        worker = self._worker = self._worker or self.dedup.worker(3)
        while not worker.is_drained():
            worker.step()
            self._note()

    def scan(self) -> None:
        self.dedup.scan()
        self._note()

    def switch(self, settings: dict[str, Any]) -> None:
        """Scan by other settings."""
        first = self.watched.settings.model_dump(exclude={"name", "columns"}, exclude_none=True)
        options = {**first, **settings}
        Deduplicator(self.dedup.database, self.watched.letters.name, {"body": Text()}, **options).scan()
        self._worker = None
        self._note()

    def _note(self) -> None:
        found = {key: group for group, key, _ in self.watched.stored()["members"]}
        self.noted.append(compared(self.seen[-1], found))
        self.seen.append(found)

    def written(self) -> list[Noted]:
        """What the history has, the earliest first."""
        return [
            (c.group_id, c.new_group_id, c.kind, c.size, c.moved, c.new_size)
            for c in reversed(self.dedup.group_changes(1_000_000))
        ]

    def expected_groups(self, group_id: str) -> set[str]:
        """To which groups of today the groups lead that had an id at any time."""
        found: set[str] = set()
        for place, before in enumerate(self.seen):
            reached = {group_id} & set(before.values())
            for now, after in zip(self.seen[place:], self.seen[place + 1 :], strict=False):
                reached = {after[key] for key, group in now.items() if group in reached and key in after}
            found |= reached
        return found


def compared(before: Partition, after: Partition) -> list[Noted]:
    """What became of each group whose id does not lead to all its rows any more, by looking at every row."""
    sizes, new_sizes = Counter(before.values()), Counter(after.values())
    parts = {
        old: Counter(after[key] for key, group in before.items() if group == old and key in after)
        for old in sizes
    }
    found: list[Noted] = []
    for old, rows in parts.items():
        if set(rows) == {old}:
            continue
        if not rows:
            found.append((old, None, "ended", sizes[old], 0, None))
        for new, count in rows.items():
            is_shared = any(new in others for other, others in parts.items() if other != old)
            kind = "split" if len(rows) > 1 else "merged" if is_shared else "new_representative"
            found.append((old, new, kind, sizes[old], count, new_sizes[new]))
    return found
