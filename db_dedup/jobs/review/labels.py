"""The labels of people that a scan must respect, and how they are moved from one recipe to the next.

A label is stored under the digests of two texts. Other columns, or another version of the program, may give
every text another digest. So each labelled row is read again. If its digest by the old settings and the old
version is still the stored one, the label is stored under its new digest.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial

from sqlalchemy import Connection

from db_dedup.config import WatchedTable
from db_dedup.dialects.base import Dialect
from db_dedup.dialects.batches import batches
from db_dedup.flow.former_digests import digest_as_of
from db_dedup.flow.pipeline import Fingerprinter
from db_dedup.flow.rows.digest import NO_FEATURES_DIGEST
from db_dedup.jobs.context import JobContext
from db_dedup.records import SourceRow, SourceTable
from db_dedup.records.fingerprints import DigestPair
from db_dedup.records.recipe import RECIPE_VERSION
from db_dedup.store.given_keys import read_given
from db_dedup.store.labels import StoredLabel, drop_labels, put_label, read_labels, sorted_label
from db_dedup.store.source import Source
from db_dedup.store.watched_tables import StoredTable, find_table

_ROWS_AT_A_TIME = 1000


@dataclass(frozen=True)
class ScanLabels:
    """The labels of a table, under the digests that the settings of a scan give.

    Attributes:
        stored: every label as it is stored.
        moved: stored label -> the same under its new digests, where they differ.
    """

    stored: list[StoredLabel] = field(default_factory=list)
    moved: dict[StoredLabel, StoredLabel] = field(default_factory=dict)

    @property
    def all(self) -> list[StoredLabel]:
        """Every label; of two on the same texts the later one."""
        return list({label.digests: label for label in [*self.stored, *self.moved.values()]}.values())

    @property
    def rejected(self) -> set[DigestPair]:
        """Pairs of texts that people have labelled as no duplicates."""
        return {label.digests for label in self.all if not label.is_duplicate}


def labels_for(context: JobContext) -> ScanLabels:
    """Return the labels that a scan by the context's settings must respect; nothing is written."""
    with context.engine.connect() as connection:
        stored = find_table(connection, context.tables, context.watched.name)
        if stored is None:
            return ScanLabels()
        labels = read_labels(connection, context.tables, stored.id)
    if not _gives_other_digests(context, stored):
        return ScanLabels(labels)
    with context.source.snapshot(context.source_engine) as rows:
        return ScanLabels(labels, _moved(context, stored, labels, rows))


def digests_of(watched: WatchedTable, rows: Sequence[SourceRow]) -> dict[str, bytes]:
    """Return row key -> digest of the row's text."""
    done = Fingerprinter(watched.recipe).fingerprint(
        [row.values for row in rows], [row.within for row in rows]
    )
    return {row.row_key: digest for row, digest in zip(rows, done.digests, strict=True)}


def move_labels(connection: Connection, context: JobContext, known: ScanLabels) -> None:
    """Store the labels under the digests of the settings that serve from this transaction on.

    Call it in the transaction that has locked the table's row, before the settings are stored and before
    anything large is written. A label that was given since `known` was read is moved as well; one that was
    withdrawn since then is not written again.
    """
    stored = find_table(connection, context.tables, context.watched.name)
    if stored is None or not _gives_other_digests(context, stored):
        return
    labels = read_labels(connection, context.tables, stored.id)
    moved = {label: known.moved[label] for label in labels if label in known.moved}
    if given_since := sorted(set(labels).difference(known.stored), key=lambda v: v.decided_at):
        with _rows_beside(connection, context) as rows:
            moved |= _moved(context, stored, given_since, rows)
    drop_labels(connection, context.tables, stored.id, [label.digests for label in moved])
    for label in moved.values():
        put_label(connection, context.tables, stored.id, label)


def _gives_other_digests(context: JobContext, stored: StoredTable) -> bool:
    """Return whether the context's settings give a text another digest, and labels can be moved to them."""
    stored.require_known()
    old, new = stored.watched, context.watched
    if stored.recipe is None or old.key != new.key or not _has_columns(context.source.table, old):
        return False
    return stored.recipe_version != RECIPE_VERSION or _text_settings(old) != _text_settings(new)


def _moved(
    context: JobContext, stored: StoredTable, labels: Sequence[StoredLabel], rows: Connection
) -> dict[StoredLabel, StoredLabel]:
    """Return stored label -> the same under its new digests, the oldest first.

    Of two labels that get the same digests the later one is kept.
    """
    before, after = _both_digests(context, stored, labels, rows)
    moved = {}
    for label in labels:
        a, b = label.key_a, label.key_b
        if (before.get(a), before.get(b)) != label.digests or not {a, b} <= after.keys():
            continue
        # By settings with fewer columns the two may be exact duplicates.
        if after[a] != after[b] and NO_FEATURES_DIGEST not in (after[a], after[b]):
            new = sorted_label((after[a], a), (after[b], b), label.is_duplicate, label.decided_at)
            if new.digests != label.digests:
                moved[label] = new
    return moved


def _both_digests(
    context: JobContext, stored: StoredTable, labels: Sequence[StoredLabel], rows: Connection
) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Return row key -> digest of the labelled rows now: by the stored recipe, and by the new settings."""
    old = stored.watched.model_copy(update={"order": None, "where": None})
    source = Source(context.source_dialect, context.source.table, old)
    attempt = partial(_attempt, context.source_dialect, rows)
    before: dict[str, bytes] = {}
    after: dict[str, bytes] = {}
    keys = sorted({key for label in labels for key in (label.key_a, label.key_b)})
    for some in batches(keys, _ROWS_AT_A_TIME):
        # Of a row that is gone the key may be none any more: the type of its column may have changed.
        found = read_given(attempt, source, some)
        digests = digest_as_of(stored.recipe_version, old.recipe, found)
        before |= {row.row_key: digest for row, digest in zip(found, digests, strict=True)}
        after |= digests_of(context.watched, read_given(attempt, context.source, some))
    return before, after


@contextmanager
def _attempt(dialect: Dialect, connection: Connection) -> Iterator[Connection]:
    """Yield a connection whose transaction goes on if a statement fails."""
    with nullcontext() if dialect.is_autocommit(connection) else connection.begin_nested():
        yield connection


@contextmanager
def _rows_beside(connection: Connection, context: JobContext) -> Iterator[Connection]:
    """Yield a connection to the user's rows, during a transaction on our tables."""
    if context.is_apart:
        with context.source.snapshot(context.source_engine) as rows:
            yield rows
    else:
        yield connection


def _text_settings(watched: WatchedTable) -> tuple[object, ...]:
    """Return the settings that a digest depends on."""
    columns = [(name, column.kind) for name, column in watched.columns.items()]
    return columns, watched.rule.normaliser, watched.within


def _has_columns(table: SourceTable, watched: WatchedTable) -> bool:
    there = {column.name for column in table.columns}
    return there.issuperset([*watched.columns, *(part.column for part in watched.within)])
