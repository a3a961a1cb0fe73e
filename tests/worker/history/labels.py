"""People who label pairs of rows, and change their minds."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection

from db_dedup import Deduplicator
from db_dedup.errors import DedupError
from db_dedup.flow.rows.digest import NO_FEATURES_DIGEST
from db_dedup.jobs.review.labels import digests_of
from db_dedup.records import PairLabel
from db_dedup.records.fingerprints import DigestPair, digest_pair
from db_dedup.store.inspection import inspect_table
from db_dedup.store.labels import read_rejected
from db_dedup.store.source import Source
from tests.worker.history.writers import Writers
from tests.worker.watched import Watched


class _Said(NamedTuple):
    rows: set[int]
    row_keys: tuple[str, str]
    is_rejected: bool


class Labels:
    """Gives labels, and remembers the last one for as long as nobody writes the two rows."""

    def __init__(self, watched: Watched, writers: Writers) -> None:
        self._watched, self._writers = watched, writers
        self._last: _Said | None = None

    def forget(self) -> None:
        """No label is remembered."""
        self._last = None

    def say(self, row: int, other: int, is_duplicate: bool | None) -> None:
        """Label two rows; None takes back what was said of them."""
        a, b = self._watched.row_key(row), self._watched.row_key(other)
        if a is None or b is None or a == b:
            return
        verdicts = Deduplicator(self._watched.dedup.database, self._watched.letters.name).labels()
        self._last = None
        # Also a transaction that ends meanwhile, by what interrupts this.
        was_being_written = self._writers.is_being_written(row, other)
        try:
            if is_duplicate is None:
                given = verdicts.withdraw(a, b)
            else:
                given = verdicts.give([PairLabel(a, b, is_duplicate)])
        except DedupError as error:
            if not error.is_transient:
                raise
            return
        is_kept = is_duplicate is None or given.kept
        if is_kept and not (was_being_written or self._writers.is_being_written(row, other)):
            self._last = _Said({row, other}, (a, b), is_rejected=is_duplicate is False)
            self._writers.touched.clear()

    def note_recipe(self) -> None:
        """Forget the label if the recipe that serves cannot tell the two rows apart."""
        with self._watched.dedup.database.engine.connect() as connection:
            if self._last and self._digests(connection, self._last) is None:
                self._last = None

    def check(self) -> None:
        """The label that is remembered holds, unless somebody has written its rows since."""
        self.note_recipe()
        if self._last is None or self._last.rows & self._writers.touched:
            return
        database = self._watched.dedup.database
        with database.engine.connect() as connection:
            stored = self._watched.read_stored(connection)
            rejected = read_rejected(connection, database.tables, stored.id)
            digests = self._digests(connection, self._last)
        assert (digests in rejected) is self._last.is_rejected, f"{self._last} does not hold"

    def _digests(self, connection: Connection, said: _Said) -> DigestPair | None:
        """Of both texts by the recipe that serves; None where it cannot tell them apart."""
        database = self._watched.dedup.database
        watched = self._watched.read_stored(connection).watched
        source = Source(database.dialect, inspect_table(connection, self._watched.letters.name), watched)
        digests = digests_of(watched, list(source.read_rows(connection, said.row_keys)))
        found = {digests.get(row_key, NO_FEATURES_DIGEST) for row_key in said.row_keys}
        return None if len(found) < 2 or NO_FEATURES_DIGEST in found else digest_pair(*found)
