"""When the worker folds the single entries of the index of sketches into new segments."""

import logging
from typing import Final

from sqlalchemy.exc import SQLAlchemyError

from db_dedup.errors import DedupError
from db_dedup.jobs.scan.folding import entries_before_folding, fold
from db_dedup.jobs.worker.driver_errors import translate_driver_error
from db_dedup.jobs.worker.worker_table import WorkerTable

logger = logging.getLogger(__name__)

_ENTRIES_A_CHANGE: Final = 100
"""An upper estimate: a change is one row, and a long text has some hundred hashes."""

_CHANGES_AFTER_A_FAILURE: Final = 1_000
"""How many changes to wait for after a failure: the next attempt would probably fail as well, and each reads
the whole index."""


class IndexFolding:
    """Folds the index of one table where its single entries are many.

    They are counted after the first batch of a worker, and then only when the changes since could have made
    them many enough: to count them reads the fingerprints of the whole table.
    """

    def __init__(self, table: WorkerTable) -> None:
        """Prepare; nothing is asked of the database yet."""
        self._table = table
        self._changes_left = 0

    def note_changes(self, count: int) -> None:
        """Note that so many changes were handled, and fold if it is time. Best effort: it is tried again."""
        self._changes_left -= count
        if self._changes_left > 0 or not count:
            return
        try:
            self._fold_if_due()
        except (DedupError, SQLAlchemyError, MemoryError) as error:
            reason = translate_driver_error(error, self._table.dialect.translate_error)
            logger.warning("the index of sketches of %s was not folded: %s", self._table.name, reason)
            self._changes_left = _CHANGES_AFTER_A_FAILURE

    def _fold_if_due(self) -> None:
        table = self._table
        with table.engine.connect() as connection:
            stored = table.read(connection)
            store = table.store(stored)
            left = entries_before_folding(connection, store)
        if left == 0 and stored.watched.rule.sketches:
            fold(table.engine, table.dialect, table.tables, stored)
        self._changes_left = max(1, left // _ENTRIES_A_CHANGE)
