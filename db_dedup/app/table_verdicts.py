"""The verdicts on one table's pairs: given, withdrawn, listed."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from sqlalchemy import Connection

from db_dedup.app.arguments import labels_of, require_count
from db_dedup.app.database import Database
from db_dedup.app.table_access import TableAccess
from db_dedup.dialects.batches import batches
from db_dedup.engines.row_texts import NOTHING_TO_SAY
from db_dedup.errors import ScanRunningError
from db_dedup.jobs.questions import choose_questions
from db_dedup.jobs.verdicts import digests_of
from db_dedup.records import GivenVerdicts, JudgedTexts, PairLabel, PairVerdict, Question, RowKey
from db_dedup.store import changes, scans, watched_tables
from db_dedup.store.changes import Change
from db_dedup.store.clock import utc_now
from db_dedup.store.given_keys import read_given
from db_dedup.store.verdicts import (
    DigestPair,
    StoredVerdict,
    digest_pair,
    drop_verdicts,
    head_keys,
    put_verdict,
    rejected_among,
    sorted_verdict,
    standing_verdicts,
)
from db_dedup.store.watched_tables import StoredTable

_LABELS_A_TRANSACTION = 500

Digests = Mapping[str, bytes]
"""Row key -> digest of the row's text."""

_T = TypeVar("_T")
_Write = Callable[[Connection, StoredTable, Digests], _T]


class TableVerdicts:
    """What people say of a table's pairs. A rejected pair stays rejected until either text changes."""

    def __init__(self, database: Database, access: TableAccess, name: str) -> None:
        self._database, self._access, self._name = database, access, name

    def standing(self) -> list[PairVerdict]:
        """The verdicts that hold, the oldest first; a changed text has ended the others."""
        database = self._database
        with database.errors_told(), database.engine.connect() as connection:
            store = self._access.store(self._access.require_stored(connection))
            return [PairVerdict(*verdict[2:]) for verdict in standing_verdicts(connection, store)]

    def questions(self, limit: int) -> list[Question]:
        """Pairs that tell most about where the rule should draw its line, and that nobody has judged."""
        require_count(limit, "limit")
        database = self._database
        with database.errors_told():
            with database.engine.connect() as connection:
                stored = self._access.require_scanned(connection).require_current()
                context = self._access.context(connection, stored.watched)
                verdicts = standing_verdicts(connection, self._access.store(stored))
            answered = {verdict.digests for verdict in verdicts}
            return choose_questions(context, stored.recipe_digest, answered, limit)

    def give(self, labels: Iterable[PairLabel], shown: JudgedTexts | None = None) -> GivenVerdicts:
        """Keep labels as verdicts, each in place of an earlier one on the same two texts.

        Args:
            labels: what somebody says of rows.
            shown: the texts that were judged, as a question names them; left out, the rows as they are now.

        Raises:
            ScanRunningError: a scan by other settings is at work, and would not know of them.
        """
        texts = self._with_text_keys(labels_of(labels))
        given = [self._give(some, shown) for some in batches(texts, _LABELS_A_TRANSACTION)]
        return GivenVerdicts(
            sum(part.kept for part in given),
            tuple(fault for part in given for fault in part.faults),
            any(part.changes_answer for part in given),
            any(part.is_queued for part in given),
        )

    def withdraw(self, key_a: RowKey, key_b: RowKey) -> GivenVerdicts:
        """Forget what was said of two rows as they are now; a fault tells if that was nothing."""
        (label,) = self._with_text_keys([PairLabel(key_a, key_b, is_duplicate=True)])
        return self._withdraw(*_keys(label))

    def _with_text_keys(self, labels: Sequence[PairLabel]) -> list[PairLabel]:
        with self._database.errors_told(), self._database.engine.connect() as connection:
            self._access.require_stored(connection)
            return self._access.labels(connection, labels)

    def _withdraw(self, key_a: str, key_b: str) -> GivenVerdicts:
        tables = self._database.tables

        def write(connection: Connection, stored: StoredTable, digests: Digests) -> GivenVerdicts:
            if not {key_a, key_b} <= digests.keys():
                return GivenVerdicts(0, (f"{_both(key_a, key_b)}: a row is not there",), False, False)
            pair = digest_pair(digests[key_a], digests[key_b])
            was_rejected = rejected_among(connection, tables, stored.id, pair)
            dropped = drop_verdicts(connection, tables, stored.id, [pair])
            is_queued = self._queue(connection, stored, was_rejected)
            faults = () if dropped else (f"{_both(key_a, key_b)}: nothing has been said of them",)
            withdrawn = not was_rejected if dropped else None
            return GivenVerdicts(0, faults, bool(was_rejected), is_queued, withdrawn)

        return self._by_one_recipe([key_a, key_b], write)

    def _give(self, labels: Sequence[PairLabel], shown: JudgedTexts | None) -> GivenVerdicts:
        def write(connection: Connection, stored: StoredTable, digests: Digests) -> GivenVerdicts:
            return self._put(connection, stored, labels, digests)

        if shown is None:
            return self._by_one_recipe(sorted({key for label in labels for key in _keys(label)}), write)
        given = self._write(shown, write)
        if given is not None:
            return given
        again = f"the settings have changed since they were shown: run `db-dedup label {self._name}` again"
        return GivenVerdicts(0, tuple(f"{_both(*_keys(label))}: {again}" for label in labels), False, False)

    def _put(
        self, connection: Connection, stored: StoredTable, labels: Sequence[PairLabel], digests: Digests
    ) -> GivenVerdicts:
        tables = self._database.tables
        verdicts: dict[DigestPair, StoredVerdict] = {}
        faults = []
        for label in labels:
            if fault := _fault(label, digests):
                faults.append(f"{_both(*_keys(label))}: {fault}")
                continue
            one, other = ((digests[key], key) for key in _keys(label))
            verdict = sorted_verdict(one, other, label.is_duplicate, utc_now())
            verdicts[verdict.digests] = verdict
        among = {digest for pair in verdicts for digest in pair}
        before = rejected_among(connection, tables, stored.id, among) & verdicts.keys()
        for verdict in verdicts.values():
            put_verdict(connection, tables, stored.id, verdict)
        after = {pair for pair, verdict in verdicts.items() if not verdict.is_duplicate}
        is_queued = self._queue(connection, stored, before ^ after)
        return GivenVerdicts(len(verdicts), tuple(faults), bool(before ^ after), is_queued)

    def _by_one_recipe(self, row_keys: Sequence[str], write: _Write[_T]) -> _T:
        """Write by the digests of rows as they are now, computed again if a scan switches meanwhile."""
        while True:
            done = self._write(self._judged(row_keys), write)
            if done is not None:
                return done

    def _write(self, judged: JudgedTexts, write: _Write[_T]) -> _T | None:
        """Write in one transaction; None, and nothing written, where another recipe serves by now."""
        database = self._database
        with database.errors_told(), database.dialect.write_transaction(database.engine) as connection:
            stored = self._held(connection)
            if stored.recipe_digest != judged.recipe_digest:
                return None
            return write(connection, stored, judged.digests)

    def _held(self, connection: Connection) -> StoredTable:
        """What is stored of the table; no scan begins or switches until the transaction ends."""
        stored = self._access.require_stored(connection)
        # Before the lock, which such a scan holds for long while it switches.
        if scans.is_building(connection, self._database.tables, self._name, stored.recipe):
            raise ScanRunningError(
                f"a scan of {self._name!r} by other settings is at work: say it again when it is done"
            )
        held = watched_tables.hold_table(connection, self._database.tables, self._name)
        return (held or stored).require_current()

    def _queue(self, connection: Connection, stored: StoredTable, pairs: Iterable[DigestPair]) -> bool:
        """Let the worker search the pairs of these texts again; False where no worker handles the table."""
        digests = sorted({digest for pair in pairs for digest in pair})
        if stored.attached_at is None or not digests:
            return False
        keys = head_keys(connection, self._access.store(stored), digests)
        again = [Change(key, changes.SEARCH_AGAIN) for key in sorted(keys)]
        database = self._database
        changes.append_changes(connection, database.dialect, database.tables, stored.id, again)
        return True

    def _judged(self, row_keys: Sequence[str]) -> JudgedTexts:
        """The rows as they are now, by the recipe that serves."""
        database = self._database
        with database.errors_told():
            with database.engine.connect() as connection:
                stored = self._access.require_stored(connection).require_current()
                _, source = self._access.source(connection, stored.watched)
            rows = read_given(database.source_engine.connect, source, row_keys)
        return JudgedTexts(stored.recipe_digest, digests_of(stored.watched, rows))


def _keys(label: PairLabel) -> tuple[str, str]:
    """The row keys of a label, which are text by now."""
    return str(label.key_a), str(label.key_b)


def _fault(label: PairLabel, digests: Digests) -> str | None:
    """Why nothing can be kept of a label."""
    for key in _keys(label):
        if key not in digests:
            return f"row {key[:40]!r} is not there"
        if digests[key] == NOTHING_TO_SAY:
            return f"row {key[:40]!r} has no text"
    one, other = _keys(label)
    if digests[one] == digests[other]:
        return "they agree in every weighted column, and are copies whatever is said of them"
    return None


def _both(key_a: str, key_b: str) -> str:
    return f"rows {key_a[:40]!r} and {key_b[:40]!r}"
