"""The lease that makes one scan the only one of its table, kept alive by a heartbeat."""

import logging
import os
import socket
import threading
from types import TracebackType
from typing import Final, Self
from uuid import uuid4

from sqlalchemy import Connection, Engine

from db_dedup.dialects.base import Dialect
from db_dedup.errors import ScanRunningError
from db_dedup.flow.threads import starting_threads
from db_dedup.schema.tables import Tables
from db_dedup.store import watched_tables
from db_dedup.store.watched_tables import StoredTable

logger = logging.getLogger(__name__)

HEARTBEAT_SECONDS: Final = watched_tables.LEASE.total_seconds() / 4


_FOLD_MARK: Final = ":fold"


def new_owner(*, folds: bool = False) -> str:
    """Return the owner to write into a lease: host, process id, and eight random digits for this one scan.

    Of a fold of the index of sketches it ends in a mark: scans wait for its end.
    """
    return f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:8]}" + (_FOLD_MARK if folds else "")


def is_fold(owner: str) -> bool:
    """Return whether the lease of this owner is for a fold of the index of sketches."""
    return owner.endswith(_FOLD_MARK)


class Lease:
    """A lease that was taken: renewed by a thread while it is held.

    The thread keeps it during long reads and long computing. Every write renews it in its own transaction
    (`fence`): a process that was suspended for longer than the lease cannot overwrite what another scan or
    the worker has written since.
    """

    def __init__(
        self, engine: Engine, dialect: Dialect, tables: Tables, stored: StoredTable, owner: str
    ) -> None:
        self._engine, self._dialect, self._tables = engine, dialect, tables
        self._table_id, self._owner = stored.id, owner
        self._answer_version: int | None = stored.answer_version
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="db-dedup-lease", daemon=True)

    def fence(self, connection: Connection) -> None:
        """Renew the lease in this transaction; nobody else can take it until the transaction ends.

        Raises:
            ScanRunningError: another scan or the worker has taken over.
        """
        is_held = watched_tables.renew_lease(
            connection, self._tables, self._table_id, self._owner, self._answer_version
        )
        if not is_held:
            raise ScanRunningError(
                "this scan was suspended for so long that another scan or the worker took over: scan again"
            )

    def let_answer_change(self) -> None:
        """Hold the lease also if the answer changes: what is still to be written does not depend on it."""
        self._answer_version = None

    def drop(self, connection: Connection) -> None:
        """Give the lease back: the next scan can begin as soon as this transaction ends."""
        watched_tables.drop_lease(connection, self._tables, self._owner)

    def __enter__(self) -> Self:
        """Start the heartbeat, unless no other connection can reach the database."""
        if self._dialect.is_shared(self._engine):
            with starting_threads():
                self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the heartbeat; the lease stays until it is dropped or runs out."""
        self._is_over.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _beat(self) -> None:
        while not self._is_over.wait(HEARTBEAT_SECONDS):
            try:
                with self._dialect.write_transaction(self._engine) as connection:
                    self.fence(connection)
            except ScanRunningError:
                return  # the next write raises it
            except Exception as error:  # the database may be busy or away, and the next beat may succeed
                logger.info("the lease was not renewed: %s", type(error).__name__)
