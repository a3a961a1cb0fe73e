"""Write the part of a new answer that does not depend on pairs, while the engine searches for these.

It is the segments of the index of sketches and, in a first scan, the links of exact duplicates and most of
the indexes of the fingerprint table. Nothing of it is shown before the answer is complete.
"""

import threading
from array import array
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Engine

from db_dedup.dialects.base import Dialect
from db_dedup.errors import DedupError
from db_dedup.flow.threads import starting_threads
from db_dedup.jobs.scan.lease import Lease
from db_dedup.jobs.scan.row_answers import NOT_SET, RowAnswers
from db_dedup.jobs.scan.scanned_table import ScannedRows
from db_dedup.jobs.scan.short_transactions import ShortTransactions
from db_dedup.jobs.scan.sketch_index import SketchDifference
from db_dedup.progress import NullProgress
from db_dedup.schema.indexes import missing_indexes
from db_dedup.store.clock import utc_now
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.index_building import make_put_off_indexes
from db_dedup.store.reader import Reader


class StoredIds(NamedTuple):
    """The ids of stored rows.

    Attributes:
        ids: int64[n], of the rows of a scan, in its order.
        gone: ids of the other rows.
    """

    ids: NDArray[np.int64]
    gone: list[int]

    @classmethod
    def read(cls, reader: Reader, store: FingerprintStore, row_keys: Sequence[str]) -> Self:
        """Read the ids of the rows of a scan.

        Raises:
            KeyError: one of them is not stored.
        """
        # By the keys that are in memory already: those that are read are as many, and each takes 60 bytes.
        place_of = {row_key: place for place, row_key in enumerate(row_keys)}
        ids, gone = array("q", bytes(8 * len(row_keys))), []
        for row_id, row_key in store.ids_and_keys(reader):
            place = place_of.get(row_key)
            if place is None:
                gone.append(row_id)
            else:
                ids[place] = row_id
        if 0 in ids:  # no stored row has this id
            raise KeyError(row_keys[ids.index(0)])
        return cls(np.array(ids, np.int64), sorted(gone))


class WrittenAhead(NamedTuple):
    """What has been written of an answer before its pairs were known.

    Attributes:
        ids: of the rows.
        answers: what the fingerprint table says of each row.
    """

    ids: StoredIds
    answers: RowAnswers


class _StoppedError(DedupError):
    """The scan has failed elsewhere."""


class _Stop(NullProgress):
    """Ends the thread at the next step, if it is to stop."""

    def __init__(self) -> None:
        self.is_set = threading.Event()

    def advance(self, amount: int) -> None:  # noqa: ARG002 - part of the protocol
        """Raise an error if the thread is to stop."""
        if self.is_set.is_set():
            raise _StoppedError("the scan was stopped")


@dataclass(frozen=True)
class AheadWriter:
    """Writes the part of a new answer that does not depend on pairs; nothing is stored of the answer yet.

    Attributes:
        store: the fingerprints of all rows under a recipe that does not serve.
        is_first: no answer of the table is shown, so that all links are new.
    """

    engine: Engine
    dialect: Dialect
    store: FingerprintStore
    lease: Lease
    is_first: bool

    def write(self, scanned: ScannedRows, stop: _Stop) -> WrittenAhead:
        """Write links, sketches and indexes."""
        store = self.store
        with ShortTransactions(self.engine, self.dialect, self.lease, stop) as writing:
            ids = StoredIds.read(writing.reader, store, scanned.table.row_keys)
            answers = RowAnswers.unset(np.sort(ids.ids))
            difference = SketchDifference.of(
                writing.reader, store, ids.ids, scanned.table, scanned.copy_of, (), serves=False
            )
            difference.write(writing, store)
            if self._puts_off_indexes():
                answers = RowAnswers.of_links(ids.ids, scanned.copy_of)
                self._write_links(writing, answers)
                writing.pause()
                fence = self.lease.fence
                make_put_off_indexes(self.engine, self.dialect, store.tables, fence, stop, before_groups=True)
        return WrittenAhead(ids, answers)

    def _puts_off_indexes(self) -> bool:
        """Return whether indexes are missing that can be made before the rows get their groups."""
        if not self.is_first or self.dialect.capabilities.updates_all_indexes:
            return False
        with self.engine.connect() as connection:
            return bool(missing_indexes(connection, self.store.tables))

    def _write_links(self, writing: ShortTransactions, answers: RowAnswers) -> None:
        """Write which rows are exact duplicates: the indexes of blocks leave them out."""
        linked, now = answers.only(answers.copy_of != NOT_SET), utc_now()
        rows = zip(linked.ids.tolist(), linked.copy_of.tolist(), strict=True)
        table = self.store.tables.fingerprint
        for connection, part in writing.parts((row_id, canonical, now) for row_id, canonical in rows):
            self.dialect.bulk_update(connection, table, "id", ("copy_of", "found_at"), part)


class WritingAhead:
    """A thread that writes ahead for the length of a block; an exception in the block stops it."""

    def __init__(self, writer: AheadWriter, scanned: ScannedRows) -> None:
        self._stop = _Stop()
        self._thread = ThreadPoolExecutor(1, "db-dedup-ahead")
        with starting_threads():
            self._written = self._thread.submit(writer.write, scanned, self._stop)

    @property
    def written(self) -> Callable[[], WrittenAhead]:
        """Waits for the end of the thread; returns what it has written, or raises its error."""
        return self._written.result

    def __enter__(self) -> Self:
        """Return the same object; the thread has run since it was made."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for the thread; if its result is not needed any more, only for its present step."""
        if error is not None:
            self._stop.is_set.set()
        self._thread.shutdown()
