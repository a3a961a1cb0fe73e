"""A scan on a cluster, step by step, as the driver runs it.

1. The executors read the table in parts and fingerprint it. The driver takes from each row what is stored of
   it, and its sketch; features stay on the executors.
2. The driver numbers the rows in the order they were received and finds exact duplicates by their digests.
   From then on only canonical rows take part. Rows are known to the executors by their digests, never by
   their place: a part that is read again after a machine was lost gives the same answer.
3. Canonical rows are shuffled by their keys, and candidate pairs by blocks of rows, to be confirmed.
4. The driver finds the groups, as connected components of confirmed pairs. The rows of each group are sent to
   one task, which gives its pairs and flags.

Two steps run on the driver alone: the numbering of the rows, which needs an order of all rows, and the
connected components, which need 8 bytes a row.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlalchemy import Engine

from db_dedup.config import EngineSettings, WatchedTable
from db_dedup.dialects import dialect_for
from db_dedup.engines.base import ReadRows
from db_dedup.engines.spark import comparing, keys, pages
from db_dedup.engines.spark.answer import SparkAnswer
from db_dedup.engines.spark.columns import arrow_types, numbers_of
from db_dedup.engines.spark.failures import translate_spark_errors
from db_dedup.engines.spark.reading import read_texts
from db_dedup.engines.spark.session import Session, open_session
from db_dedup.flow.candidates.sketches import Sketches
from db_dedup.flow.compare.rule import Rule
from db_dedup.flow.matching.groups import connected, group_sizes
from db_dedup.flow.matching.match import NO_ROW, find_exact_duplicates
from db_dedup.flow.matching.spool import FeatureSpool
from db_dedup.flow.rows.keys import refuse_repeated
from db_dedup.flow.rows.order import receipt_ranks
from db_dedup.progress import Progress
from db_dedup.records import Family
from db_dedup.records.fingerprints import DigestPair, RowFingerprint
from db_dedup.records.forms import UNKNOWN_FORM
from db_dedup.records.frames import FrameList
from db_dedup.records.recipe import Recipe
from db_dedup.store.source import Source

LONGEST_RUN: Final = 200
LONGEST_BUCKET: Final = 2_000
ROWS_A_TASK: Final = 20_000
ROWS_OF_KEYS: Final = 100_000

_TAKEN: Final = (
    *("row_key", "order_value", "fingerprint", "digest", "form", "framed", "size", "feature_set", "within"),
    "sketch",
)
"""What the driver takes of each row."""


class _Edges(NamedTuple):
    """Pairs of canonical rows that are in one group, int32[p] each."""

    a: NDArray[np.int32]
    b: NDArray[np.int32]


class SparkScan:
    """Reads and matches one table; see `engines.base.ReadingScan`.

    Attributes:
        framed_count: rows whose frame was left out.
        reread: always empty: `match` reads no row again.
    """

    def __init__(
        self,
        watched: WatchedTable,
        recipe: Recipe,
        key_families: Sequence[Family],
        row_count: int,
        settings: EngineSettings,
        resources: ExitStack,
    ) -> None:
        self._watched, self._recipe, self._key_families = watched, recipe, key_families
        self._settings, self._expected = settings, row_count
        self._session: Session
        self._resources = resources
        self._rule = Rule(watched.setting)
        self._spool = resources.enter_context(FeatureSpool(keep_weights=False))
        self._rows: Any = None  # the frame of Spark with all rows
        self._row_keys: list[str] = []
        self._order_values: list[str | None] = []
        self._fingerprints: list[NDArray[np.int64]] = []
        self._has_fingerprint: list[NDArray[np.bool_]] = []
        self._digests = bytearray()
        self._within: list[int] = []
        self._within_numbers: dict[str | None, int] = {}
        self._forms: list[int] = []
        self.framed_count = 0
        self.reread: Sequence[RowFingerprint] = ()

    @property
    def row_count(self) -> int:
        """How many rows have been read so far."""
        return len(self._row_keys)

    @property
    def segmented_count(self) -> int:
        """How many texts have been segmented so far: every one."""
        return self.row_count

    def leave_out(self, frames: FrameList) -> None:
        """Leave these frames out of all texts."""
        self._recipe = replace(self._recipe, frames=frames)

    def read_table(
        self, source: Source, engine: Engine, *, with_sketch_sizes: bool = False
    ) -> Iterator[list[RowFingerprint]]:
        """Read and fingerprint the whole table, and yield its rows page by page."""
        access = dialect_for(engine).jdbc(engine)  # before Spark starts, which takes a while
        self._session = self._resources.enter_context(open_session(self._settings))
        self._session.divide(self._expected, self._settings.partitions)
        with translate_spark_errors():
            query, texts = read_texts(self._session, access, source, engine)
            has_sketches = self._watched.rule.sketches
            steps = pages.PageSteps(
                pages.pickled(self._recipe),
                query.texts,
                query.has_order,
                self._key_families,
                with_sketch_sizes and has_sketches,
                has_sketches,
                self._rule.uses_weights,
            )
            rows = texts.mapInArrow(partial(pages.fingerprint_batches, steps), pages.ROW)
            self._rows = self._kept(rows)
            self._rows.count()  # all parts at a time: the iterator below asks for one after the other
            packed = self._rows.select(*_TAKEN).mapInArrow(pages.packed_pages, pages.PAGE)
            for row in packed.toLocalIterator(prefetchPartitions=True):
                page = pages.unpacked_page(bytes(row["page"]))
                is_row = np.array(page.column("row_key").is_valid())
                source.rows_without_key += int(np.count_nonzero(~is_row))
                yield self._taken(page.filter(pa.array(is_row)))

    def match(
        self,
        progress: Progress,
        read_rows: ReadRows,  # noqa: ARG002 - every text was segmented
        rejected: Collection[DigestPair] = (),
    ) -> SparkAnswer:
        """Number the rows in the order they were received and find all duplicates."""
        refuse_repeated(self._row_keys)
        ranks = receipt_ranks(self._order_values, self._row_keys, self._key_families)
        order = np.argsort(ranks)
        digests = np.frombuffer(bytes(self._digests), np.uint64).reshape(-1, 2)[order]
        fingerprints = np.concatenate([np.empty(0, np.int64), *self._fingerprints])[order].view(np.uint64)
        has_fingerprint = np.concatenate([np.empty(0, np.bool_), *self._has_fingerprint])[order]
        copy_of = find_exact_duplicates(digests)
        canonical = np.flatnonzero((copy_of == NO_ROW) & has_fingerprint).astype(np.int32)
        within = np.array(self._within, np.int32)[order]
        with translate_spark_errors():
            matched = self._matched(canonical, digests, within, rejected, progress)
        numbers = order.tolist()
        return SparkAnswer(
            [self._row_keys[i] for i in numbers],
            [self._order_values[i] for i in numbers],
            fingerprints,
            has_fingerprint,
            digests,
            self._spool.all_sketches(),
            order if self._watched.rule.sketches else np.full(order.size, NO_ROW),
            np.array(self._forms, np.int8)[order],
            copy_of,
            matched,
        )

    def _taken(self, page: pa.Table) -> list[RowFingerprint]:
        """Keep what the driver needs of a page of rows; return what is stored of them."""
        columns = {name: page.column(name).to_pylist() for name in ("row_key", "order_value", "digest")}
        has_fingerprint = np.array(page.column("fingerprint").is_valid(), np.bool_)
        fingerprints = np.array(page.column("fingerprint").fill_null(0).to_numpy(), np.int64)
        self._row_keys += columns["row_key"]
        self._order_values += columns["order_value"]
        self._digests += b"".join(columns["digest"])
        self._fingerprints.append(fingerprints)
        self._has_fingerprint.append(has_fingerprint)
        forms = page.column("form").to_pylist()
        self._forms += [UNKNOWN_FORM if form is None else form for form in forms]
        numbers = self._within_numbers
        self._within += [numbers.setdefault(text, len(numbers)) for text in page.column("within").to_pylist()]
        self.framed_count += sum(page.column("framed").to_pylist())
        self._spool.add_sketches(Sketches(*numbers_of(page.column("sketch"), np.uint64)))
        unsigned = fingerprints.view(np.uint64).tolist()
        stored = zip(
            columns["row_key"],
            columns["order_value"],
            [value if has else None for value, has in zip(unsigned, has_fingerprint.tolist(), strict=True)],
            columns["digest"],
            forms,
            page.column("size").to_pylist(),
            page.column("feature_set").to_pylist(),
            strict=True,
        )
        return list(map(RowFingerprint._make, stored))

    def _matched(
        self,
        canonical: NDArray[np.int32],
        digests: NDArray[np.uint64],
        within: NDArray[np.int32],
        rejected: Collection[DigestPair],
        progress: Progress,
    ) -> pa.Table:
        """Return the pairs and groups of canonical rows, as `comparing.MATCHED` has them."""
        if not canonical.size:
            return comparing.nothing_matched()
        compared = comparing.Comparison(self._rule, self._watched.abridge_above, frozenset(rejected))
        rows = self._kept(self._numbered(canonical, digests, within))
        progress.start("candidates", None)
        edges = self._edges(rows, compared, canonical)
        progress.finish()
        progress.start("pairs", None)
        tasks = _tasks_of_groups(canonical, edges)
        chosen = rows.join(self._frame({"number": tasks[0], "task": tasks[1]}), "number")
        found = chosen.groupBy("task").applyInArrow(
            lambda table: comparing.match(compared, table), comparing.MATCHED
        )
        matched = found.toArrow()
        progress.finish()
        return matched

    def _numbered(
        self, canonical: NDArray[np.int32], digests: NDArray[np.uint64], within: NDArray[np.int32]
    ) -> Any:
        """Return the frame of the canonical rows with their numbers, each once."""
        own = digests[canonical]
        numbers = self._frame(
            {
                "digest": pa.array([digest.tobytes() for digest in own], pa.binary()),
                "number": canonical,
                "within": within[canonical],
            }
        )
        joined = self._rows.drop("within").join(numbers, "digest").select(*arrow_types(comparing.NUMBERED))
        partitioned = joined.repartition(self._session.partitions, "number")
        return partitioned.mapInArrow(pages.one_row_of_each_number, comparing.NUMBERED)

    def _edges(self, rows: Any, compared: comparing.Comparison, canonical: NDArray[np.int32]) -> _Edges:
        """Return confirmed pairs that connect all groups."""
        partitions = self._session.partitions
        radius = self._watched.rule.radius
        limits = keys.KeyLimits(radius, LONGEST_RUN, LONGEST_BUCKET, ROWS_A_TASK, ROWS_OF_KEYS)
        keyed = rows.select("number", "within", "fingerprint", "sketch").mapInArrow(
            partial(keys.row_keys, radius), keys.KEY
        )
        found = self._kept(
            keyed.repartition(partitions, "key").mapInArrow(partial(keys.pairs_of_keys, limits), keys.FOUND)
        )
        blocks = max(1, -(-int(canonical.max(initial=0) + 1) // ROWS_A_TASK))
        confirmed = self._confirmed(rows, compared, found, blocks)
        hot = self._hot(rows, compared, found)
        table = confirmed.union(hot).toArrow()
        return _Edges(*(np.array(table.column(name).to_numpy(), np.int32) for name in ("a", "b")))

    def _confirmed(self, rows: Any, compared: comparing.Comparison, found: Any, blocks: int) -> Any:
        """Return the frame of candidate pairs that are duplicates."""
        pairs = (
            found.where(f"kind <> {keys.HOT}")
            .groupBy("a", "b")
            .agg({"kind": "min", "odd": "sum", "least": "min"})
            .where(f"`min(kind)` = {keys.NEAR} OR `sum(odd)` >= `min(least)`")
            .selectExpr(
                "a",
                "b",
                f"cast(floor(a / {ROWS_A_TASK}) * {blocks} + floor(b / {ROWS_A_TASK}) AS long) AS task",
            )
        )
        pairs = self._kept(pairs)
        # Another name for the task, by which Spark tells the two frames apart.
        ends = [pairs.selectExpr(f"{end} AS number", "task AS at") for end in ("a", "b")]
        wanted = ends[0].union(ends[1])
        needed = rows.join(wanted.distinct(), "number")
        return (
            pairs.groupBy("task")
            .cogroup(needed.groupBy("at"))
            .applyInArrow(lambda some, own: comparing.confirm(compared, some, own), comparing.EDGES)
        )

    def _hot(self, rows: Any, compared: comparing.Comparison, found: Any) -> Any:
        """Return the frame of pairs that connect the groups among the rows of hot keys."""
        wanted = found.where(f"kind = {keys.HOT}").selectExpr("a AS number", "b AS task").distinct()
        needed = rows.join(wanted, "number")
        return needed.groupBy("task").applyInArrow(
            lambda table: comparing.connect(compared, table), comparing.EDGES
        )

    def _frame(self, columns: dict[str, Any]) -> Any:
        """Return arrays of the driver as a frame of Spark."""
        frame = self._session.spark.createDataFrame(pa.table(columns))
        # PySpark makes a part of each 2,000 rows (`maxRecordsPerBatch`), which would be a task each.
        return frame.coalesce(self._session.partitions)

    def _kept(self, frame: Any) -> Any:
        """Keep a frame on the executors until the scan ends, in memory or on their disks."""
        kept = frame.persist()
        self._resources.callback(_forget, kept)
        return kept


def _tasks_of_groups(
    canonical: NDArray[np.int32], edges: _Edges
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return (int32[g] the rows that are in groups, int32[g] the task of each): a group is in one task."""
    left, right = (np.searchsorted(canonical, each).astype(np.int32) for each in edges)
    roots = connected(canonical.size, left, right)
    sizes = group_sizes(roots)
    # Groups one after the other, in tasks of about equal size.
    tasks = np.cumsum(np.where(sizes > 1, sizes, 0)) // ROWS_A_TASK
    members = np.flatnonzero(sizes[roots] > 1)
    return canonical[members], tasks[roots[members]].astype(np.int32)


def _forget(frame: Any) -> None:
    """Free what a frame takes on the executors."""
    frame.unpersist()
