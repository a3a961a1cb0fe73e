"""The verdicts that a scan must respect, and how they get from one recipe to the next.

A verdict is kept by the digests of two texts. Other columns, and another version of the program, may give
every text another digest. So each judged row is read once more: if its text is still the one that was judged,
by the old settings and the old version, the verdict is kept by its new digest from then on.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from sqlalchemy import Connection

from db_dedup.config import RECIPE_VERSION, WatchedTable
from db_dedup.dialects.batches import batches
from db_dedup.engines.fingerprinter import Fingerprinter
from db_dedup.engines.former_digests import digest_as_of
from db_dedup.engines.row_texts import NOTHING_TO_SAY
from db_dedup.jobs.context import JobContext
from db_dedup.records import SourceRow, SourceTable
from db_dedup.store.source import Source
from db_dedup.store.verdicts import (
    DigestPair,
    StoredVerdict,
    drop_verdicts,
    put_verdict,
    read_verdicts,
    sorted_verdict,
)
from db_dedup.store.watched_tables import StoredTable, find_table

_ROWS_AT_A_TIME = 1000


@dataclass(frozen=True)
class ScanVerdicts:
    """What people have said, in the terms of the settings of a scan.

    Attributes:
        stored: every verdict as it is kept.
        moved: of them, those that are to be kept by other digests -> how.
    """

    stored: list[StoredVerdict] = field(default_factory=list)
    moved: dict[StoredVerdict, StoredVerdict] = field(default_factory=dict)

    @property
    def all(self) -> list[StoredVerdict]:
        """Every verdict; of two on the same texts the later one."""
        return list({verdict.digests: verdict for verdict in [*self.stored, *self.moved.values()]}.values())

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
    if not _gives_other_digests(context, stored):
        return ScanVerdicts(verdicts)
    with context.source_dialect.read_snapshot(context.source_engine) as rows:
        return ScanVerdicts(verdicts, _moved(context, stored, verdicts, rows))


def digests_of(watched: WatchedTable, rows: Sequence[SourceRow]) -> dict[str, bytes]:
    """Row key -> digest of the row's text."""
    done = Fingerprinter(watched).fingerprint([row.values for row in rows], [row.within for row in rows])
    return {row.row_key: digest for row, digest in zip(rows, done.digests, strict=True)}


def move_verdicts(connection: Connection, context: JobContext, known: ScanVerdicts) -> None:
    """Keep the verdicts by the digests of the settings that serve from this transaction on.

    Call it in the transaction that has the table's row locked, before the settings are stored and before
    anything large is written. A verdict that was given since `known` was read is moved as well; one that was
    withdrawn since then stays away.
    """
    stored = find_table(connection, context.tables, context.watched.name)
    if stored is None or not _gives_other_digests(context, stored):
        return
    verdicts = read_verdicts(connection, context.tables, stored.id)
    moved = {verdict: known.moved[verdict] for verdict in verdicts if verdict in known.moved}
    if given_since := sorted(set(verdicts).difference(known.stored), key=lambda v: v.decided_at):
        with _rows_beside(connection, context) as rows:
            moved |= _moved(context, stored, given_since, rows)
    drop_verdicts(connection, context.tables, stored.id, [verdict.digests for verdict in moved])
    for verdict in moved.values():
        put_verdict(connection, context.tables, stored.id, verdict)


def _gives_other_digests(context: JobContext, stored: StoredTable) -> bool:
    """Whether the context's settings give a text another digest, and verdicts can be brought over to them."""
    stored.require_known()
    old, new = stored.watched, context.watched
    if stored.recipe is None or old.key != new.key or not _has_columns(context.source.table, old):
        return False
    return stored.recipe_version != RECIPE_VERSION or _text_settings(old) != _text_settings(new)


def _moved(
    context: JobContext, stored: StoredTable, verdicts: Sequence[StoredVerdict], rows: Connection
) -> dict[StoredVerdict, StoredVerdict]:
    """The oldest first, so that of two that come to stand for the same texts the later one is kept."""
    before, after = _both_digests(context, stored, verdicts, rows)
    moved = {}
    for verdict in verdicts:
        a, b = verdict.key_a, verdict.key_b
        if (before.get(a), before.get(b)) != verdict.digests or not {a, b} <= after.keys():
            continue
        # Settings that compare less may make copies of the two.
        if after[a] != after[b] and NOTHING_TO_SAY not in (after[a], after[b]):
            new = sorted_verdict((after[a], a), (after[b], b), verdict.is_duplicate, verdict.decided_at)
            if new.digests != verdict.digests:
                moved[verdict] = new
    return moved


def _both_digests(
    context: JobContext, stored: StoredTable, verdicts: Sequence[StoredVerdict], rows: Connection
) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """The digests of the judged rows as they are now: by the stored recipe, and by the context's settings."""
    old = stored.watched.model_copy(update={"order": None, "where": None})
    source = Source(context.source_dialect, context.source.table, old)
    before: dict[str, bytes] = {}
    after: dict[str, bytes] = {}
    keys = sorted({key for verdict in verdicts for key in (verdict.key_a, verdict.key_b)})
    for some in batches(keys, _ROWS_AT_A_TIME):
        found = list(source.read_rows(rows, some))
        digests = digest_as_of(stored.recipe_version, old, found)
        before |= {row.row_key: digest for row, digest in zip(found, digests, strict=True)}
        after |= digests_of(context.watched, list(context.source.read_rows(rows, some)))
    return before, after


@contextmanager
def _rows_beside(connection: Connection, context: JobContext) -> Iterator[Connection]:
    """A connection to the user's rows, in the middle of a transaction on our tables."""
    if context.is_apart:
        with context.source_dialect.read_snapshot(context.source_engine) as rows:
            yield rows
    else:
        yield connection


def _text_settings(watched: WatchedTable) -> tuple[object, ...]:
    """What a digest is made of."""
    columns = [(name, column.kind) for name, column in watched.columns.items()]
    return columns, watched.normaliser, watched.within


def _has_columns(table: SourceTable, watched: WatchedTable) -> bool:
    there = {column.name for column in table.columns}
    return there.issuperset([*watched.columns, *(part.column for part in watched.within)])
