"""A second engine, deliberately slow: every pair by plain Python, every change a look at the whole table."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import pairwise

import numpy as np
from sqlalchemy import Connection

from db_dedup.config import WatchedTable
from db_dedup.engines.base import GroupBatch, LinkBatch, ReadRows, RowBatch
from db_dedup.engines.embedded.answer import EmbeddedAnswer
from db_dedup.engines.scans_only import ScansOnly
from db_dedup.flow.candidates.sketches import NO_SKETCHES
from db_dedup.flow.compare.measures import NO_SIMILARITY
from db_dedup.flow.features.details import CHARACTERS, LONG_GRAMS, PLACES
from db_dedup.flow.matching.match import Matches
from db_dedup.flow.matching.pairs import Pairs
from db_dedup.flow.pipeline import FingerprintedRows, Fingerprinter, joined_rows
from db_dedup.flow.rows.digest import NO_FEATURES_DIGEST
from db_dedup.flow.rows.order import receipt
from db_dedup.flow.stored_rows import row_fingerprints
from db_dedup.jobs.scan.answer import AnswerDifference
from db_dedup.jobs.scan.scanned_table import ScannedRows
from db_dedup.jobs.scan.short_transactions import OneTransaction
from db_dedup.progress import NullProgress, Progress
from db_dedup.records import Family, SourceRow
from db_dedup.records.fingerprints import DigestPair, RowFingerprint, StoredFingerprint
from db_dedup.records.frames import FrameList
from db_dedup.records.recipe import Recipe
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.source import Source
from tests.engines.reference import Expected, MatchRule, Row, brute_force


class SlowScan:
    def __init__(self, watched: WatchedTable, recipe: Recipe, families: Sequence[Family]) -> None:
        self._watched, self._families = watched, families
        self._fingerprinter = Fingerprinter(recipe)
        self.framed_count = 0
        self.pages_at_once = 1
        self._rows: list[SourceRow] = []
        self._done: list[FingerprintedRows] = [self._fingerprinter.fingerprint([])]
        self.reread: Sequence[RowFingerprint] = ()

    @property
    def row_count(self) -> int:
        return len(self._rows)

    @property
    def segmented_count(self) -> int:
        return len(self._rows)

    def leave_out(self, frames: FrameList) -> None:
        self._fingerprinter.leave_out(frames)

    def add_page(
        self,
        page: Sequence[SourceRow],
        stored: Mapping[str, StoredFingerprint],
        *,
        with_sketch_sizes: bool = False,
    ) -> list[RowFingerprint]:
        done = self._fingerprinter.fingerprint([row.values for row in page], [row.within for row in page])
        self.framed_count += int(np.count_nonzero(done.framed))
        self._rows += page
        self._done.append(done)
        return row_fingerprints(page, done)

    def match(
        self, progress: Progress, read_rows: ReadRows, rejected: Collection[DigestPair] = ()
    ) -> "SlowAnswer":
        assert not rejected, "not needed by these tests"
        order = sorted(
            range(len(self._rows)),
            key=lambda i: receipt(self._rows[i].order_value, self._rows[i].row_key, self._families),
        )
        rows = [self._rows[i] for i in order]
        done = self._fingerprinter.fingerprint([row.values for row in rows], [row.within for row in rows])
        assert sorted(done.digests) == sorted(joined_rows(self._done).digests)
        rule = self._watched.rule
        measure = None if rule.similarity == NO_SIMILARITY else rule.similarity
        found = brute_force(
            reference_rows(rows, done),
            MatchRule(
                rule.radius,
                measure,
                rule.threshold,
                self._watched.abridge_above,
                rule.short_threshold,
                rule.long_grams,
                self._watched.exclude_kinds,
            ),
        )
        table = done.compared([row.within for row in rows])
        matches = matches_of(found, self._watched.abridge_above)
        keys, order_values = [row.row_key for row in rows], [row.order_value for row in rows]
        return SlowAnswer(
            EmbeddedAnswer(keys, order_values, table, done.forms, matches.copy_of, lambda: matches)
        )


class SlowAnswer:
    """The same answer in batches of seven."""

    def __init__(self, whole: EmbeddedAnswer) -> None:
        self._whole = whole

    def rows(self) -> Iterator[RowBatch]:
        (all_rows,) = self._whole.rows()
        for part in parts(len(all_rows.row_keys)):
            places = np.arange(len(all_rows.row_keys[part]))
            is_sketched = all_rows.sketch_places[part] >= 0
            taken = np.where(is_sketched, all_rows.sketch_places[part], 0)
            sketches = all_rows.sketches.take(taken) if is_sketched.any() else NO_SKETCHES
            yield RowBatch(
                all_rows.row_keys[part],
                all_rows.order_values[part],
                all_rows.fingerprints[part],
                all_rows.has_fingerprint[part],
                all_rows.digests[part],
                sketches,
                np.where(is_sketched, places, -1),
                all_rows.forms[part],
            )

    def links(self) -> Iterator[LinkBatch]:
        (links,) = self._whole.links()
        for part in parts(links.rows.size):
            yield LinkBatch(*(column[part] for column in links))

    def pairs(self) -> Iterator[Pairs]:
        (found,) = self._whole.pairs()
        for part in parts(found.left.size):
            yield Pairs(
                found.left[part],
                found.right[part],
                found.distances[part],
                found.similarities[part],
                found.kinds[part],
            )

    def groups(self) -> Iterator[GroupBatch]:
        (groups,) = self._whole.groups()
        for part in parts(groups.rows.size):
            yield GroupBatch(
                groups.rows[part],
                groups.representatives[part],
                groups.is_loose[part],
                groups.is_abridged[part],
            )


def parts(count: int) -> Iterator[slice]:
    return (slice(first, first + 7) for first in range(0, count, 7))


class SlowIncrement:
    has_index = False

    def __init__(
        self, watched: WatchedTable, recipe: Recipe, store: FingerprintStore, source: Source
    ) -> None:
        self._watched, self._recipe, self.store, self.source = watched, recipe, store, source

    def make_ready(self) -> None:
        pass

    def load_index(self, connection: Connection) -> None:
        pass

    def drop_index(self) -> None:
        pass

    def prepare(self, connection: Connection, row_keys: Collection[str], again: Collection[str] = ()) -> None:
        pass

    def apply(
        self,
        connection: Connection,
        row_keys: Collection[str],
        now: datetime,
        again: Collection[str] = (),
        written: Collection[str] = (),
    ) -> set[str]:
        scan = SlowScan(self._watched, self._recipe, [column.family for column in self.source.key_columns])
        changed = []
        for page in self.source.read_pages(connection):
            stored = self.store.find_rows(connection, [row.row_key for row in page])
            for row in scan.add_page(page, stored):
                old = stored.get(row.row_key)
                if old is None or not old.is_of(row):
                    changed.append(row)
        stored = self.store.find_rows(connection, [row.row_key for row in changed])
        self.store.put_rows(connection, changed, stored)
        scanned = ScannedRows.collected(scan.match(NullProgress(), lambda _: ())).with_pairs()
        writing = OneTransaction(connection, self.store.dialect, NullProgress())
        keys = {row.row_key for row in changed}
        difference = AnswerDifference.of(writing.reader, self.store, scanned, keys, serves=True)
        difference.write(writing, self.store, now)
        return set()


class SlowEngine:
    """Scans and increments; a check is refused."""

    name = "slow"
    lookup = ScansOnly.lookup
    expanded_pairs = ScansOnly.expanded_pairs

    @contextmanager
    def scan(
        self, watched: WatchedTable, recipe: Recipe, key_families: Sequence[Family], row_count: int
    ) -> Iterator[SlowScan]:
        yield SlowScan(watched, recipe, key_families)

    def increment(
        self,
        watched: WatchedTable,
        recipe: Recipe,
        store: FingerprintStore,
        source: Source,
        cache_bytes: int,
    ) -> SlowIncrement:
        return SlowIncrement(watched, recipe, store, source)


def reference_rows(rows: Sequence[SourceRow], done: FingerprintedRows) -> list[Row]:
    features = done.features
    slices = [slice(a, b) for a, b in pairwise(features.starts.tolist())]
    within: dict[str | None, int] = {}
    return [
        Row(
            int(done.fingerprints[i]) if done.has_fingerprint[i] else None,
            0 if done.digests[i] == NO_FEATURES_DIGEST else int.from_bytes(done.digests[i]),
            within.setdefault(row.within, len(within)),
            dict(zip(features.hashes[own].tolist(), features.weights[own].tolist(), strict=True)),
            frozenset(done.sketches.of(i).tolist()),
            tuple(done.details.of(i, CHARACTERS).tolist()[1:]),
            frozenset(done.details.of(i, LONG_GRAMS).tolist()),
            frozenset(done.details.of(i, PLACES).tolist()),
        )
        for i, (row, own) in enumerate(zip(rows, slices, strict=True))
    ]


def matches_of(found: Expected, abridge_above: int) -> Matches:
    pairs = sorted(found.pairs)
    distances = [found.pairs[pair][0] for pair in pairs]
    scores = [np.nan if (score := found.pairs[pair][1]) is None else score for pair in pairs]
    kinds = [found.pairs[pair][2] for pair in pairs]
    left, right = np.array(pairs, np.int32).reshape(-1, 2).T
    count = len(found.copy_of)
    is_abridged = np.zeros(count, np.bool_)
    is_loose = np.zeros(count, np.bool_)
    is_loose[list(found.loose)] = True
    assert max(found.sizes.values(), default=0) <= abridge_above, "not needed by these tests"
    return Matches(
        np.array(found.copy_of, np.int32).reshape(-1),
        Pairs(
            left,
            right,
            np.array(distances, np.int16),
            np.array(scores, np.float64),
            np.array(kinds, np.uint8),
        ),
        np.array(found.group_of, np.int32).reshape(-1),
        is_loose,
        is_abridged,
    )
