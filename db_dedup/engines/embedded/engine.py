"""The embedded engine: it works on one machine, in the caller's process and in child processes."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from sqlalchemy import Connection

from db_dedup.config import EngineSettings, WatchedTable
from db_dedup.engines.embedded.compile_ahead import CompilingAhead
from db_dedup.engines.embedded.expansion import Expansion
from db_dedup.engines.embedded.fingerprint_process import FingerprintProcesses
from db_dedup.engines.embedded.increment import EmbeddedIncrement
from db_dedup.engines.embedded.lookup import EmbeddedLookup
from db_dedup.engines.embedded.own_process import can_run_modules
from db_dedup.engines.embedded.table_scan import EmbeddedScan
from db_dedup.flow.compare.rule import Rule
from db_dedup.flow.matching.budget import MATCHING_MB
from db_dedup.flow.matching.spool import FeatureSpool
from db_dedup.flow.pipeline import Fingerprinter
from db_dedup.flow.usable_cores import usable_cores
from db_dedup.records import Family
from db_dedup.records.pair_columns import PairColumns
from db_dedup.records.recipe import Recipe
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.source import Source

_ROWS_WORTH_A_PROCESS = 20_000
"""Each process takes two seconds of a processor to start."""

_MOST_PROCESSES = 8
"""Each has dictionaries and libraries of its own in memory, and one process reads and writes for all."""


class EmbeddedEngine:
    """Finds duplicates with numpy and compiled kernels. See `engines.base.Engine` for the methods."""

    name = "embedded"

    def __init__(self, settings: EngineSettings | None = None) -> None:
        """Take the settings; None for the defaults."""
        given = settings.matching_mb if settings else None
        self._matching_memory = (given or MATCHING_MB) << 20

    @contextmanager
    def scan(
        self, watched: WatchedTable, recipe: Recipe, key_families: Sequence[Family], row_count: int
    ) -> Iterator[EmbeddedScan]:
        """Yield a pass over a table; its features are in temporary files until the end of the block."""
        with ExitStack() as resources:
            uses_weights = Rule(watched.setting).uses_weights
            spool = resources.enter_context(FeatureSpool(keep_weights=uses_weights))
            # The processes start while this one looks for the compiled kernels.
            fingerprinter = _fingerprinter(recipe, row_count, uses_weights, resources)
            compiling = resources.enter_context(CompilingAhead())
            yield EmbeddedScan(watched, key_families, spool, fingerprinter, compiling, self._matching_memory)

    def increment(
        self,
        watched: WatchedTable,
        recipe: Recipe,
        store: FingerprintStore,
        source: Source,
        cache_bytes: int,
    ) -> EmbeddedIncrement:
        """Return the incremental processing of a table."""
        return EmbeddedIncrement(
            watched, store, source, Fingerprinter(recipe, threads=usable_cores()), cache_bytes
        )

    def lookup(
        self, watched: WatchedTable, recipe: Recipe, store: FingerprintStore, source: Source
    ) -> EmbeddedLookup:
        """Return what checks records against a table."""
        return EmbeddedLookup(watched, recipe, store, source)

    def expanded_pairs(
        self,
        watched: WatchedTable,
        recipe: Recipe,
        store: FingerprintStore,
        source: Source,
        connection: Connection,
        source_connection: Connection,
    ) -> Iterator[PairColumns]:
        """Yield every pair of rows whose classes of exact duplicates are the same or paired, in parts."""
        return Expansion(watched, recipe, store, source).pairs(connection, source_connection)


def _fingerprinter(
    recipe: Recipe, row_count: int, uses_weights: bool, resources: ExitStack
) -> Fingerprinter | FingerprintProcesses:
    """Return the fingerprinter, in processes of its own if the table has enough rows to be worth it."""
    count = min(usable_cores(), row_count // _ROWS_WORTH_A_PROCESS, _MOST_PROCESSES)
    if count < 1 or not can_run_modules():
        return Fingerprinter(recipe)
    return resources.enter_context(FingerprintProcesses(recipe, count, keep_weights=uses_weights))
