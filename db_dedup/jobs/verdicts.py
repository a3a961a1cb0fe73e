"""The verdicts that a scan must respect, and how they get from one recipe to the next.

A verdict is kept by the digests of two texts, and settings that compare other columns give every text another
digest. So each judged row is read once more: if its text is, by the old settings, still the one that was
judged, the verdict is kept by its new digest from then on.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection

from db_dedup.config import WatchedTable
from db_dedup.engines.fingerprinter import NOTHING_TO_SAY, Fingerprinter
from db_dedup.jobs.context import JobContext
from db_dedup.records import SourceRow, SourceTable
from db_dedup.schema.tables import Tables
from db_dedup.store.source import Source
from db_dedup.store.verdicts import (
    DigestPair,
    StoredVerdict,
    drop_verdicts,
    put_verdict,
    read_verdicts,
    sorted_verdict,
)
from db_dedup.store.watched_tables import find_table


@dataclass(frozen=True)
class ScanVerdicts:
    """What people have said, in the terms of the settings of a scan.

    Attributes:
        all: every verdict.
        moved: (digests it is kept by, the verdict as it is to be kept) where that is by other digests.
    """

    all: list[StoredVerdict] = field(default_factory=list)
    moved: list[tuple[DigestPair, StoredVerdict]] = field(default_factory=list)

    @property
    def rejected(self) -> set[DigestPair]:
        """Pairs of texts that are no duplicates, whatever the rule says."""
        return {verdict.digests for verdict in self.all if not verdict.is_duplicate}


def verdicts_for(context: JobContext) -> ScanVerdicts:
    """The verdicts as a scan by the context's settings must respect them; nothing is written."""
    with context.engine.connect() as connection:
        stored = find_table(connection, context.tables, context.watched.name)
        if stored is None:
            return ScanVerdicts()
        verdicts = read_verdicts(connection, context.tables, stored.id)
    moved = _moved(context, stored.watched, verdicts) if stored.recipe is not None else []
    latest = {v.digests: v for v in [*verdicts, *(verdict for _, verdict in moved)]}
    return ScanVerdicts(list(latest.values()), moved)


def digests_of(watched: WatchedTable, rows: Sequence[SourceRow]) -> dict[str, bytes]:
    """Row key -> digest of the row's text."""
    done = Fingerprinter(watched).fingerprint([row.values for row in rows], [row.within for row in rows])
    return {row.row_key: digest for row, digest in zip(rows, done.digests, strict=True)}


def move_verdicts(connection: Connection, tables: Tables, table_id: int, verdicts: ScanVerdicts) -> None:
    """Keep the verdicts by the digests of the settings that serve from this transaction on."""
    drop_verdicts(connection, tables, table_id, [digests for digests, _ in verdicts.moved])
    for _, verdict in verdicts.moved:
        put_verdict(connection, tables, table_id, verdict)


def _moved(
    context: JobContext, old: WatchedTable, verdicts: Sequence[StoredVerdict]
) -> list[tuple[DigestPair, StoredVerdict]]:
    """The oldest first, so that of two that come to stand for the same texts the later one is kept."""
    if (
        not verdicts
        or _text_settings(old) == _text_settings(context.watched)
        or old.key != context.watched.key
    ):
        return []
    if not _has_columns(context.source.table, old):
        return []
    keys = sorted({key for verdict in verdicts for key in (verdict.key_a, verdict.key_b)})
    judged_by = old.model_copy(update={"order": None, "where": None})
    former = Source(context.source_dialect, context.source.table, judged_by)
    with context.source_dialect.read_snapshot(context.source_engine) as connection:
        before = digests_of(old, list(former.read_rows(connection, keys)))
        after = digests_of(context.watched, list(context.source.read_rows(connection, keys)))
    moved = []
    for verdict in verdicts:
        a, b = verdict.key_a, verdict.key_b
        if (before.get(a), before.get(b)) != verdict.digests or not {a, b} <= after.keys():
            continue
        # Settings that compare less may make copies of the two.
        if after[a] != after[b] and NOTHING_TO_SAY not in (after[a], after[b]):
            rows = (after[a], a), (after[b], b)
            new = sorted_verdict(*rows, verdict.is_duplicate, verdict.decided_at)
            moved += [(verdict.digests, new)] if new.digests != verdict.digests else []
    return moved


def _text_settings(watched: WatchedTable) -> tuple[object, ...]:
    """What a digest is made of."""
    columns = [(name, column.kind) for name, column in watched.columns.items()]
    return columns, watched.normaliser, watched.within


def _has_columns(table: SourceTable, watched: WatchedTable) -> bool:
    there = {column.name for column in table.columns}
    return there.issuperset([*watched.columns, *(part.column for part in watched.within)])
