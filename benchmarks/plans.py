"""How PostgreSQL runs what checks, the worker and readers of the views ask of a scanned table, and how large
each table and index of db_dedup is. Every read of a whole large table is named.

The plans are those that the statements have run by (`auto_explain.py`), prepared ones included.

    python -m benchmarks plans --size rows=1000000
"""

import json
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from threading import Event
from time import sleep
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, text, update
from sqlalchemy.exc import DBAPIError

from benchmarks.auto_explain import Plan, Recorder, reading_all
from benchmarks.growth import SETTINGS, TEXTS, fill, made_petitions, multiplied_articles, warm_up
from benchmarks.processes import measure
from benchmarks.servers import each_database
from db_dedup import Deduplicator
from db_dedup.app import Database
from db_dedup.config import Settings
from db_dedup.jobs.worker.change_worker import ChangeWorker

_SUPPLEMENT = "另：相关材料已于本周补充提交。"
_CHECKS = 20
_LARGE_ROWS = 10_000
_HEAD = f"{'':<30} {'runs':>5} {'ms':>8} {'most ms':>8} {'rows':>8} {'dropped':>8} {'pages':>8}"

_SIZES = text("""
    SELECT relname, relkind, greatest(reltuples, 0)::bigint, pg_relation_size(oid),
           CASE WHEN relkind = 'r' THEN pg_table_size(oid) - pg_relation_size(oid) ELSE 0 END
    FROM pg_class WHERE relnamespace = 'dedup'::regnamespace AND relkind IN ('r', 'i')
    ORDER BY pg_relation_size(oid) DESC
""")
_LARGE = text("SELECT relname FROM pg_class WHERE relkind = 'r' AND reltuples >= :least")
_CHURN = text("""
    SELECT relname, n_live_tup, n_tup_ins, n_tup_upd, n_tup_hot_upd, n_tup_del, n_dead_tup,
           vacuum_count + autovacuum_count, relallvisible * 100 / greatest(relpages, 1)
    FROM pg_stat_user_tables JOIN pg_class USING (relname)
    WHERE schemaname = 'dedup' AND relnamespace = 'dedup'::regnamespace
      AND n_tup_ins + n_tup_upd + n_tup_del >= 100
    ORDER BY n_dead_tup DESC
""")
_LEAST_BYTES = 20_000
_SHOWN_CHARACTERS = 200
_STATISTICS_SECONDS = 1.5
_TINY = ("pg_", "alembic_version", "watched_table", "frame_list", "scan_table", "dead_change", "verdict")

# As the documentation writes them (docs/how-to/query-the-views.md); the parameters are those of a row.
_VIEWS = {
    "pairs of a row": "SELECT key_a, key_b, similarity FROM dedup.duplicate_pairs"
    " WHERE table_name = 'texts' AND key_a = :key UNION ALL"
    " SELECT key_a, key_b, similarity FROM dedup.duplicate_pairs"
    " WHERE table_name = 'texts' AND key_b = :key",
    "pairs of a row, by OR": "SELECT key_a, key_b, similarity FROM dedup.duplicate_pairs"
    " WHERE table_name = 'texts' AND (key_a = :key OR key_b = :key)",
    "group of a row": "SELECT group_id FROM dedup.duplicate_members"
    " WHERE table_name = 'texts' AND row_key = :key",
    "members of a group": "SELECT row_key FROM dedup.duplicate_members"
    " WHERE table_name = 'texts' AND group_id = :group",
    "rows of a group": "SELECT * FROM dedup.duplicates_of_texts WHERE group_id = :group",
    "a row, joined by key": "SELECT t.id, m.group_id FROM texts AS t JOIN dedup.duplicate_members AS m"
    " ON m.table_name = 'texts' AND m.row_key = CAST(t.id AS text) WHERE t.id = :id",
    "100 rows, joined by key": "SELECT t.id, m.group_id FROM texts AS t"
    " LEFT JOIN dedup.duplicate_members AS m ON m.table_name = 'texts' AND m.row_key = CAST(t.id AS text)"
    " ORDER BY t.id LIMIT 100",
    "a row, by its own id": "SELECT * FROM dedup.duplicates_of_texts WHERE id = :id",
    "100 pairs": "SELECT * FROM dedup.duplicate_pairs WHERE table_name = 'texts' LIMIT 100",
    "number of pairs": "SELECT count(*) FROM dedup.duplicate_pairs WHERE table_name = 'texts'",
    "lag of the queue": "SELECT * FROM dedup.queue_lag",
}

_OF_GROUPS = {
    "20 largest groups": "SELECT group_id, size FROM dedup.duplicate_groups"
    " WHERE table_name = 'texts' ORDER BY size DESC, group_id LIMIT 20",
    "number of groups": "SELECT count(*) FROM dedup.duplicate_groups WHERE table_name = 'texts'",
}


@dataclass(frozen=True)
class Sizes:
    """How many rows, and how many changes the worker handles in each of two runs."""

    rows: int = 100_000
    changes: int = 1_000


SMALL = Sizes(rows=1_000, changes=50)


def run(data: Path | None, sizes: Sizes = Sizes()) -> None:
    """Print the sizes, then the plans step by step, then every whole read of a large table."""
    warm_up()
    kind = "articles of law, multiplied with fresh edits" if data else "made-up petitions"
    for _, url in each_database(("PostgreSQL",)):
        print(f"PostgreSQL: {sizes.rows:,} {kind}, default preset")
        with tempfile.TemporaryDirectory() as folder, closing(Database(url, create=True)) as database:
            fill(database, multiplied_articles(data, sizes.rows) if data else made_petitions(sizes.rows))
            _scan(Path(folder), url)
            _tell_sizes(database, sizes.rows)
            watched = Settings.from_file(Path(folder) / "dedup.toml").watched("texts")
            try:
                _Steps(database, Deduplicator(database, watched), sizes).run()
            except DBAPIError as error:
                print(f"no plans: {str(error.orig).splitlines()[0]}")


def _scan(folder: Path, url: str) -> None:
    (folder / "dedup.toml").write_text(SETTINGS.format(url=json.dumps(url)), encoding="utf-8")
    # Attached first: the worker would otherwise begin with a scan.
    for command in (("upgrade",), ("attach", "texts"), ("scan", "texts")):
        measure("db_dedup.cli", *command, folder=folder)


def _tell_sizes(database: Database, rows: int) -> None:
    print(f"{'table or index':<34} {'entries':>12} {'MB':>9} {'TOAST MB':>9} {'bytes a row':>12}")
    with database.engine.connect() as connection:
        for name, kind, entries, size, toast in connection.execute(_SIZES):
            if size + toast >= _LEAST_BYTES:
                shown = name if kind == "r" else f"  {name}"
                print(
                    f"{shown:<34} {entries:>12,} {size / 1e6:>9.1f} {toast / 1e6:>9.1f} "
                    f"{(size + toast) / rows:>12.1f}"
                )


def _read_churn(database: Database) -> list[tuple[Any, ...]]:
    """Return what was written in each table so far, and what vacuum has left; it may lag by half a second."""
    sleep(_STATISTICS_SECONDS)
    with database.engine.connect() as connection:
        return list(map(tuple, connection.execute(_CHURN)))


def _tell_churn(when: str, rows: Sequence[tuple[Any, ...]]) -> None:
    names = ("live", "inserted", "updated", "of these HOT", "deleted", "dead", "vacuums", "visible %")
    print(f"{when:<16}" + "".join(f" {name:>12}" for name in names))
    for name, *counts in rows:
        print(f"{name:<16}" + "".join(f" {count:>12,}" for count in counts))


def _vacuum(database: Database) -> None:
    """Vacuum our tables, as autovacuum does some time later."""
    with database.engine.connect() as connection:
        connection.execution_options(isolation_level="AUTOCOMMIT")
        for table in database.tables.metadata.sorted_tables:
            connection.execute(text(f"VACUUM {table.fullname}"))


class _Steps:
    """Runs each step and prints the plans of its statements."""

    def __init__(self, database: Database, dedup: Deduplicator, sizes: Sizes) -> None:
        self._database, self._dedup, self._sizes = database, dedup, sizes
        self._recorder = Recorder()
        self._whole: dict[tuple[str, str, str], list[Plan]] = {}
        with database.engine.connect() as connection:
            found = connection.execute(
                _LARGE,
                {"least": min(_LARGE_ROWS, sizes.rows // 2)},
            )
            self._large = set(found.scalars())

    def run(self) -> None:
        """Run all steps; a second run of the worker finds what the first has written."""
        before = _read_churn(self._database)
        self._recorder.listen(self._database.engine)
        print(_HEAD)
        self._step(f"{_CHECKS} checks", self._check)
        self._step(f"{_CHECKS} checks that block", self._check_blocking)
        for turn in range(2):
            self._change(turn)
            self._step(f"worker, {self._sizes.changes:,} changes", self._work)
        self._step(f"{_CHECKS} checks", self._check)
        churn = _read_churn(self._database)
        self._read_views("view", _VIEWS | _OF_GROUPS)
        _vacuum(self._database)
        self._read_views("vacuumed", _OF_GROUPS)
        self._tell_whole()
        _tell_churn("after the scan", before)
        _tell_churn("after the worker", churn)

    def _step(self, name: str, work: Callable[[], object]) -> None:
        self._recorder.take()
        work()
        plans = self._recorder.take()
        for label, same in _by_access(plans).items():
            print(f"{name:<30} {_figures(same)}  {label}", flush=True)
        for table, plan in reading_all(plans, self._large):
            self._whole.setdefault((name, table, plan.text), []).append(plan)

    def _tell_whole(self) -> None:
        print(
            "statements that read a large table as a whole:"
            if self._whole
            else "no large table is read whole"
        )
        for (name, table, statement), same in self._whole.items():
            print(f"{name:<30} {_figures(same)}  {table}: ... {statement[-_SHOWN_CHARACTERS:]}")

    def _texts(self) -> Sequence[str]:
        query = select(TEXTS.c.text).where(TEXTS.c.id <= _CHECKS)
        with self._database.engine.connect() as connection:
            return connection.execute(query).scalars().all()

    def _check(self) -> None:
        for value in self._texts():
            self._dedup.check({"text": value})

    def _check_blocking(self) -> None:
        for value in self._texts():
            with self._database.engine.begin() as connection:
                self._dedup.check({"text": value}, connection, block=True)

    def _change(self, turn: int) -> None:
        """Edit, insert and delete rows, three of five changes being edits."""
        step = max(10, self._sizes.rows * 5 // self._sizes.changes)
        place = TEXTS.c.id % step
        edited = update(TEXTS).values(text=TEXTS.c.text.concat(_SUPPLEMENT))
        added = select(TEXTS.c.id + 10 * self._sizes.rows + turn, TEXTS.c.text).where(place == 4)
        with self._database.engine.begin() as connection:
            connection.execute(edited.where(place.in_([5 * turn % step, 1, 2])))
            connection.execute(insert(TEXTS).from_select(["id", "text"], added))
            connection.execute(delete(TEXTS).where(place == 5 + turn))

    def _work(self) -> None:
        worker = self._dedup.worker()
        worker._choice.may_prefer_scan = False  # batches are to be explained
        ChangeWorker([worker]).run(Event(), drain=True)

    def _read_views(self, when: str, queries: Mapping[str, str]) -> None:
        with self._database.engine.connect() as connection:
            parameters = _middle_group(connection)
            for name, query in queries.items():
                self._step(f"{when}: {name}", lambda q=query: _read(connection, q, parameters))  # type: ignore[misc]


def _read(connection: Connection, query: str, parameters: dict[str, object]) -> None:
    """Run a query to its end; its plan comes when its transaction ends."""
    connection.execute(text(query), parameters).all()
    connection.rollback()


def _middle_group(connection: Connection) -> dict[str, object]:
    """Return the parameters of the views: a group of a middle size, and its representative."""
    sizes = select(text("group_id"), text("size")).select_from(text("dedup.duplicate_groups")).subquery()
    count = connection.execute(select(func.count()).select_from(sizes)).scalar_one()
    query = text("SELECT group_id FROM dedup.duplicate_groups ORDER BY size OFFSET :half LIMIT 1")
    group = connection.execute(query, {"half": count // 2}).scalar_one()
    connection.rollback()
    return {"key": group, "group": group, "id": int(group)}


def _by_access(plans: Sequence[Plan]) -> dict[str, list[Plan]]:
    """Group plans by statement and by what they read; without those of the catalogue and of tiny tables."""
    found: defaultdict[str, list[Plan]] = defaultdict(list)
    for plan in plans:
        if not all((one.index or one.table).startswith(_TINY) for one in plan.accesses):
            found[plan.label].append(plan)
    return found


def _figures(plans: Sequence[Plan]) -> str:
    """Return the number of runs, and medians of the others."""
    times = [plan.milliseconds for plan in plans]
    counts = (median(getattr(plan, name) for plan in plans) for name in ("rows", "dropped", "pages"))
    shown = " ".join(f"{round(count):>8,}" for count in counts)
    return f"{len(plans):>5,} {median(times):>8.2f} {max(times):>8.2f} {shown}"
