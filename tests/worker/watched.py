"""A table that is watched in one of several ways, and the answer that a full scan would give for it now."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import (
    Column,
    Connection,
    Engine,
    Integer,
    MetaData,
    String,
    Table,
    column,
    delete,
    event,
    select,
    table,
    update,
)

from db_dedup import Deduplicator, Text
from db_dedup.config import WatchedTable
from db_dedup.engines.embedded.matching import NO_ROW
from db_dedup.engines.embedded.spool import FeatureSpool
from db_dedup.engines.embedded.table_scan import ScannedTable, TableScan
from db_dedup.engines.fingerprinter import Fingerprinter
from db_dedup.jobs.change_worker import TableWorker
from db_dedup.progress import NullProgress
from db_dedup.schema.views import fixed_view
from db_dedup.store import watched_tables
from db_dedup.store.inspection import inspect_table
from db_dedup.store.source import Source

WAYS: tuple[dict[str, Any], ...] = (
    {"abridge_above": 3},
    {"preset": "strict", "abridge_above": 2},
    {"preset": "strict", "radius": 11, "within": "region", "order": None},
    {"radius": 11, "similarity": "word_jaccard", "threshold": 0.5, "bands": False, "abridge_above": 3},
    {"within": "region", "min_features": 7, "abridge_above": 2},
    {"where": "region <> 'C'", "similarity": "none", "radius": 7},
)
"""Settings beside the columns; every other table has a key of two columns."""

WAIT_SECONDS = 5
"""So long a statement of the worker may wait for a lock; it should never wait for the application."""

Row = tuple[str | None, str, int | None]
"""Body, region, received."""
Answer = dict[str, Any]


def letters(number: int) -> Table:
    """A table of letters; those of odd numbers have a key of two columns."""
    key: list[Column[Any]] = [Column("id", Integer, primary_key=True, autoincrement=False)]
    if number % 2:
        key = [
            Column("year", Integer, primary_key=True, autoincrement=False),
            Column("no", String(9), primary_key=True),
        ]
    values: list[Column[Any]] = [
        Column("body", String(400)),
        Column("region", String(9)),
        Column("received", Integer),
    ]
    return Table(f"letters_{number}", MetaData(), *key, *values)


@dataclass
class Watched:
    """A watched table with what its tests need."""

    letters: Table
    dedup: Deduplicator
    settings: WatchedTable
    source: Source
    fingerprinter: Fingerprinter

    @classmethod
    def make(cls, engine: Engine, number: int) -> Watched:
        """The table made, scanned empty and attached."""
        settings = {"order": "received", "segmenter": "words", **WAYS[number]}
        made = letters(number)
        made.create(engine)
        dedup = Deduplicator(engine, made.name, {"body": Text()}, **settings)
        dedup.upgrade()
        dedup.attach()
        dedup.scan()
        with engine.connect() as connection:
            stored = watched_tables.find_table(connection, dedup.database.tables, made.name)
            assert stored is not None
            source = Source(dedup.database.dialect, inspect_table(connection, made.name), stored.watched)
        return cls(made, dedup, stored.watched, source, Fingerprinter(stored.watched))

    def workers(self) -> list[TableWorker]:
        """Two of them: one asks the database, one keeps the fingerprints in memory."""
        asking, remembering = self.dedup.worker(3), self.dedup.worker(4)
        asking._memory_is_worth = lambda *_: False  # type: ignore[method-assign]
        remembering._memory_is_worth = lambda *_: True  # type: ignore[method-assign]
        return [asking, remembering]

    def key(self, number: int) -> dict[str, Any]:
        """The key columns of one of the rows that a history may write."""
        if "id" in self.letters.c:
            return {"id": number}
        return {"year": number % 3, "no": f'n"{number}'}

    def empty(self) -> None:
        """No rows, and nothing of ours that tells of any."""
        database = self.dedup.database
        tables = database.tables
        with database.engine.begin() as connection:
            connection.execute(delete(self.letters))
            for ours in (tables.band, tables.pair, tables.fingerprint, tables.change, tables.dead_change):
                connection.execute(delete(ours))
            version = tables.watched_table.c.answer_version
            connection.execute(update(tables.watched_table).values(answer_version=version + 1))

    def fresh(self) -> Answer:
        """What a full scan of the rows would find."""
        with self.dedup.database.engine.connect() as connection:
            families = [c.family for c in self.source.key_columns]
            with FeatureSpool(keep_weights=False) as spool:
                scan = TableScan(self.settings, families, spool, self.fingerprinter)
                for page in self.source.read_pages(connection):
                    scan.add_page(page, {})
                return _answer(scan.match(NullProgress(), lambda _: []))

    def stored(self) -> Answer:
        """What the four views say, `found_at` aside."""
        database, name = self.dedup.database, self.letters.name
        key = [c.name for c in self.letters.primary_key]
        own = table(
            f"{'' if database.namespace.schema else database.namespace.prefix}duplicates_of_{name}",
            *map(column, ("group_id", "group_size", "is_representative", *key)),
            schema=database.namespace.schema,
        )

        def of(connection: Connection, base: str, *columns: str) -> list[tuple[Any, ...]]:
            view = fixed_view(database.namespace, base)
            query = select(*(view.c[c] for c in columns)).where(view.c.table_name == name)
            return [tuple(row) for row in connection.execute(query)]

        with database.engine.connect() as connection:
            pairs = of(connection, "duplicate_pairs", "key_a", "key_b", "distance", "similarity")
            groups = of(
                connection,
                "duplicate_groups",
                *("group_id", "size", "representative_key", "is_loose", "is_abridged"),
            )
            members = of(connection, "duplicate_members", "group_id", "row_key", "is_representative")
            rows = [tuple(row) for row in connection.execute(select(own))]
            copies = self._copies(connection)
        links = [pair for pair in pairs if pair[:2] in copies]
        pairs = [pair for pair in pairs if pair[:2] not in copies]
        found_rows = [(g, size, bool(first), _key_text(key)) for g, size, first, *key in rows]
        return _as_compared(pairs, links, groups, members, found_rows)

    def _copies(self, connection: Connection) -> set[tuple[Any, ...]]:
        """(key, key of its copy): the view does not tell a link from a pair of the same words in another
        order, of which an abridged group may do without."""
        tables = self.dedup.database.tables
        original, copy = tables.fingerprint.alias("original"), tables.fingerprint.alias("copy")
        stored = watched_tables.find_table(connection, tables, self.letters.name)
        assert stored is not None
        query = (
            select(original.c.row_key, copy.c.row_key)
            .join_from(copy, original, original.c.id == copy.c.copy_of)
            .where(original.c.table_id == stored.id)
        )
        return {tuple(row) for row in connection.execute(query)}


def wait_for_nobody(engine: Engine, name: str) -> None:
    """Let every session of an engine fail rather than wait for long."""
    statement = {
        "postgresql": f"SET lock_timeout = '{WAIT_SECONDS}s'",
        "mariadb": f"SET SESSION innodb_lock_wait_timeout = {WAIT_SECONDS}",
    }.get(name)

    def set_up(connection: Any, _: object) -> None:
        if statement:
            with connection.cursor() as cursor:
                cursor.execute(statement)
            connection.commit()

    event.listen(engine, "connect", set_up)


def _key_text(values: list[Any]) -> str:
    if len(values) == 1:
        return str(values[0])
    return json.dumps([str(value) for value in values], ensure_ascii=False, separators=(",", ":"))


def _answer(scanned: ScannedTable) -> Answer:
    keys, found = scanned.row_keys, scanned.matches
    group_of = found.group_of.tolist()
    sizes = np.bincount([g for g in group_of if g != NO_ROW], minlength=len(keys) + 1).tolist()
    links = [(keys[h], keys[c], 0, 1.0) for c, h in enumerate(found.copy_of.tolist()) if h != NO_ROW]
    columns = (found.pairs.left, found.pairs.right, found.pairs.distances, found.pairs.similarities)
    pairs = [
        (keys[a], keys[b], d, None if np.isnan(s) else s)
        for a, b, d, s in zip(*(c.tolist() for c in columns), strict=True)
    ]
    first = [i for i, group in enumerate(group_of) if group == i]
    groups = [
        (keys[i], sizes[i], keys[i], bool(found.is_loose[i]), bool(found.is_abridged[i])) for i in first
    ]
    grouped = [(i, g) for i, g in enumerate(group_of) if g != NO_ROW]
    members = [(keys[g], keys[i], i == g) for i, g in grouped]
    rows = [(keys[g], sizes[g], i == g, keys[i]) for i, g in grouped]
    return _as_compared(pairs, links, groups, members, rows)


def _as_compared(
    pairs: list[tuple[Any, ...]],
    links: list[tuple[Any, ...]],
    groups: list[tuple[Any, ...]],
    members: list[tuple[Any, ...]],
    rows: list[tuple[Any, ...]],
) -> Answer:
    """Of an abridged group not which pairs are stored, but how many, and how many groups they make."""
    abridged = {group[0] for group in groups if group[4]}
    group_of = {member: group for group, member, _ in members}
    kept = list(links)
    connecting: dict[Any, list[tuple[Any, ...]]] = defaultdict(list)
    for pair in pairs:
        group = group_of.get(pair[0])
        (connecting[group] if group in abridged else kept).append(pair)
    return {
        "pairs": sorted(kept, key=repr),
        "groups": sorted(groups),
        "members": sorted(members),
        "rows": sorted(rows),
        "connected": sorted((group, _components(found)) for group, found in connecting.items()),
    }


def _components(pairs: list[tuple[Any, ...]]) -> tuple[int, int, int]:
    """(pairs, rows, components) of some pairs."""
    root = {key: key for pair in pairs for key in pair[:2]}
    for a, b, *_ in pairs:
        before, after = root[a], root[b]
        root = {key: after if r == before else r for key, r in root.items()}
    return len(pairs), len(root), len(set(root.values()))
