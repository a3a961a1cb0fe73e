"""Give, withdraw and list the labels of one table's pairs."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from sqlalchemy import Connection

from db_dedup.app.arguments import labels_of, require_count
from db_dedup.app.database import Database
from db_dedup.app.table_access import TableAccess
from db_dedup.dialects.batches import batches
from db_dedup.errors import ScanRunningError
from db_dedup.flow.rows.digest import NO_FEATURES_DIGEST
from db_dedup.jobs.review.labels import digests_of
from db_dedup.records import (
    GivenLabel,
    JudgedTexts,
    LabelOutcome,
    PairLabel,
    Question,
    RepeatedLabels,
    RowKey,
)
from db_dedup.records.fingerprints import DigestPair, digest_pair
from db_dedup.store import changes, scans, watched_tables
from db_dedup.store.changes import Change
from db_dedup.store.clock import utc_now
from db_dedup.store.given_keys import read_given
from db_dedup.store.labels import (
    StoredLabel,
    canonical_keys,
    current_labels,
    drop_labels,
    put_label,
    rejected_among,
    sorted_label,
)
from db_dedup.store.watched_tables import StoredTable
from db_dedup.translation import Phrase

_LABELS_A_TRANSACTION = 500

Digests = Mapping[str, bytes]
"""Row key -> digest of the row's text."""

_Write = Callable[[Connection, StoredTable, Digests], LabelOutcome]


class TableLabels:
    """The labels of one table's pairs. A label applies until either text changes."""

    def __init__(self, database: Database, access: TableAccess, name: str) -> None:
        self._database, self._access, self._name = database, access, name

    def stored(self) -> list[GivenLabel]:
        """Return the labels that apply, the oldest first; a label ends when either text changes."""
        database = self._database
        with database.translate_driver_errors(), database.engine.connect() as connection:
            store = self._access.store(self._access.require_stored(connection))
            return [GivenLabel(*label[2:]) for label in current_labels(connection, store)]

    def questions(self, limit: int) -> list[Question]:
        """Return the unlabelled pairs that help most to find the best threshold and radius."""
        from db_dedup.jobs.review.questions import choose_questions  # noqa: PLC0415 - see `Deduplicator.scan`

        require_count(limit, "limit")
        database = self._database
        with database.translate_driver_errors():
            with database.engine.connect() as connection:
                stored = self._access.require_scanned(connection).require_current()
                context = self._access.stored_context(connection, stored)
                labels = current_labels(connection, self._access.store(stored))
            answered = {label.digests for label in labels}
            return choose_questions(context, stored.recipe_digest, answered, limit)

    def give(self, labels: Iterable[PairLabel], shown: JudgedTexts | None = None) -> LabelOutcome:
        """Store labels; each replaces an earlier label of the same two texts, also one of these labels.

        Args:
            labels: the labels of pairs of rows.
            shown: the texts that were judged, as a question names them; if left out, the present texts.

        Raises:
            ScanRunningError: a scan by other settings is running and would miss the labels.
        """
        texts = self._with_text_keys(labels_of(labels))
        of_pairs = [(frozenset(_keys(label)), label) for label in texts]
        repeated = RepeatedLabels.among((pair, label.is_duplicate) for pair, label in of_pairs)
        last = list(dict(of_pairs).values())
        kept: list[StoredLabel] = []
        given = [self._give(some, shown, kept) for some in batches(last, _LABELS_A_TRANSACTION)]
        same_texts = RepeatedLabels.among((by_text.digests, by_text.is_duplicate) for by_text in kept)
        return LabelOutcome(
            len(kept) - same_texts.count,
            tuple(fault for part in given for fault in part.faults),
            any(part.changes_answer for part in given),
            any(part.is_queued for part in given),
            repeated=repeated,
            same_texts=same_texts,
            exact_duplicates=sum(part.exact_duplicates for part in given),
        )

    def withdraw(self, key_a: RowKey, key_b: RowKey, shown: JudgedTexts | None = None) -> LabelOutcome:
        """Drop the label of two rows; a fault reports if there was none.

        Args:
            key_a: of one row.
            key_b: of the other row.
            shown: the texts that the label is of, as for `give`; if left out, the present texts.
        """
        (label,) = self._with_text_keys([PairLabel(key_a, key_b, is_duplicate=True)])
        return self._withdraw(label, shown)

    def _with_text_keys(self, labels: Sequence[PairLabel]) -> list[PairLabel]:
        with self._database.translate_driver_errors(), self._database.engine.connect() as connection:
            self._access.require_stored(connection)
            return self._access.labels(connection, labels)

    def _withdraw(self, label: PairLabel, shown: JudgedTexts | None) -> LabelOutcome:
        tables = self._database.tables
        key_a, key_b = _keys(label)

        def write(connection: Connection, stored: StoredTable, digests: Digests) -> LabelOutcome:
            if not {key_a, key_b} <= digests.keys():
                fault = Phrase("{rows}: a row is not there", rows=_both(key_a, key_b))
                return LabelOutcome(0, (fault,), False, False)
            pair = digest_pair(digests[key_a], digests[key_b])
            was_rejected = rejected_among(connection, tables, stored.id, pair)
            dropped = drop_labels(connection, tables, stored.id, [pair])
            is_queued = self._queue(connection, stored, was_rejected)
            fault = Phrase("{rows}: they have no label", rows=_both(key_a, key_b))
            faults = () if dropped else (fault,)
            withdrawn = not was_rejected if dropped else None
            return LabelOutcome(0, faults, bool(was_rejected), is_queued, withdrawn)

        return self._by_one_recipe([label], shown, write)

    def _give(
        self, labels: Sequence[PairLabel], shown: JudgedTexts | None, kept: list[StoredLabel]
    ) -> LabelOutcome:
        """Store some of the labels and append to `kept` what was stored, also several of the same texts."""

        def write(connection: Connection, stored: StoredTable, digests: Digests) -> LabelOutcome:
            return self._put(connection, stored, labels, digests, kept)

        return self._by_one_recipe(labels, shown, write)

    def _put(
        self,
        connection: Connection,
        stored: StoredTable,
        labels: Sequence[PairLabel],
        digests: Digests,
        kept: list[StoredLabel],
    ) -> LabelOutcome:
        tables = self._database.tables
        new: dict[DigestPair, StoredLabel] = {}
        faults = []
        exact_duplicates = 0
        for label in labels:
            if fault := _fault(label, digests):
                faults.append(Phrase("{rows}: {fault}", rows=_both(*_keys(label)), fault=fault))
                continue
            one, other = ((digests[key], key) for key in _keys(label))
            if one[0] == other[0]:
                exact_duplicates += 1
                continue
            by_text = sorted_label(one, other, label.is_duplicate, utc_now())
            new[by_text.digests] = by_text
            kept.append(by_text)
        among = {digest for pair in new for digest in pair}
        before = rejected_among(connection, tables, stored.id, among) & new.keys()
        for by_text in new.values():
            put_label(connection, tables, stored.id, by_text)
        after = {pair for pair, by_text in new.items() if not by_text.is_duplicate}
        is_queued = self._queue(connection, stored, before ^ after)
        return LabelOutcome(
            len(new), tuple(faults), bool(before ^ after), is_queued, exact_duplicates=exact_duplicates
        )

    def _by_one_recipe(
        self, labels: Sequence[PairLabel], shown: JudgedTexts | None, write: _Write
    ) -> LabelOutcome:
        """Write by the digests of the shown texts; a fault for each label if the recipe is another one now.

        Without shown texts those of the present rows are taken, and computed again if a scan switches the
        recipe.
        """
        if shown is not None:
            return self._write(shown, write) or self._outdated(labels)
        row_keys = sorted({key for label in labels for key in _keys(label)})
        while True:
            done = self._write(self._judged(row_keys), write)
            if done is not None:
                return done

    def _outdated(self, labels: Sequence[PairLabel]) -> LabelOutcome:
        again = Phrase(
            "the settings have changed since they were shown: run `db-dedup label {name}` again",
            name=self._name,
        )
        faults = (Phrase("{rows}: {fault}", rows=_both(*_keys(label)), fault=again) for label in labels)
        return LabelOutcome(0, tuple(faults), False, False)

    def _write(self, judged: JudgedTexts, write: _Write) -> LabelOutcome | None:
        """Write in one transaction; return None, with nothing written, if another recipe is in use now."""
        database = self._database
        with (
            database.translate_driver_errors(),
            database.dialect.write_transaction(database.engine) as connection,
        ):
            stored = self._locked(connection)
            if stored.recipe_digest != judged.recipe_digest:
                return None
            return write(connection, stored, judged.digests)

    def _locked(self, connection: Connection) -> StoredTable:
        """Lock the table's row, so that no scan begins or switches until the transaction ends; return it."""
        stored = self._access.require_stored(connection)
        # This comes before the lock, which a scan by other settings keeps for long while it switches.
        if scans.is_building(connection, self._database.tables, self._name, stored.recipe):
            raise ScanRunningError(
                "a scan of {name!r} by other settings is running: label again when it is done",
                name=self._name,
            )
        held = watched_tables.hold_table(connection, self._database.tables, self._name)
        return (held or stored).require_current()

    def _queue(self, connection: Connection, stored: StoredTable, pairs: Iterable[DigestPair]) -> bool:
        """Let the worker search the pairs of these texts again; return False if the table is not attached."""
        digests = sorted({digest for pair in pairs for digest in pair})
        if stored.attached_at is None or not digests:
            return False
        keys = canonical_keys(connection, self._access.store(stored), digests)
        again = [Change(key, changes.SEARCH_AGAIN) for key in sorted(keys)]
        database = self._database
        changes.append_changes(connection, database.dialect, database.tables, stored.id, again)
        return True

    def _judged(self, row_keys: Sequence[str]) -> JudgedTexts:
        """Return the digests of the present texts of these rows, by the recipe in use."""
        database = self._database
        with database.translate_driver_errors():
            with database.engine.connect() as connection:
                stored = self._access.require_stored(connection).require_current()
                _, source = self._access.source(connection, stored.watched)
            rows = read_given(database.source_engine.connect, source, row_keys)
        return JudgedTexts(stored.recipe_digest, digests_of(stored.watched, rows))


def _keys(label: PairLabel) -> tuple[str, str]:
    """Return the row keys of a label, already converted to text."""
    return str(label.key_a), str(label.key_b)


def _fault(label: PairLabel, digests: Digests) -> str | None:
    """Return why a label cannot be stored; None if it can."""
    for key in _keys(label):
        if key not in digests:
            return Phrase("row {key!r} is not there", key=key[:40])
        if digests[key] == NO_FEATURES_DIGEST:
            return Phrase("row {key!r} has no text", key=key[:40])
    one, other = _keys(label)
    if digests[one] == digests[other] and not label.is_duplicate:
        return Phrase("they agree in every weighted column, and are exact duplicates whatever their label is")
    return None


def _both(key_a: str, key_b: str) -> str:
    return Phrase("rows {key_a!r} and {key_b!r}", key_a=key_a[:40], key_b=key_b[:40])
