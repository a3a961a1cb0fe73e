"""Whether the service can work: it is prepared, and its database answers."""

import time
from typing import Final

from db_dedup.app import Database
from db_dedup.errors import DedupError
from db_dedup.web.problems import RefusedError
from db_dedup.web.thread_limit import LimitedThreads

_KEPT_SECONDS: Final = 1.0


class Readiness:
    """Asks the database at most once a second, because the request needs no token."""

    def __init__(self, database: Database, threads: LimitedThreads) -> None:
        self._database, self._threads = database, threads
        self.is_prepared = False
        self._asked_at, self._is_ready = float("-inf"), False

    async def is_ready(self) -> bool:
        """Return whether the service is prepared and the database answers, with our tables in it."""
        if self.is_prepared and time.monotonic() - self._asked_at > _KEPT_SECONDS:
            self._asked_at = time.monotonic()
            try:
                await self._threads.run(self._database.require_schema)
                self._is_ready = True
            except (DedupError, RefusedError):
                self._is_ready = False
        return self._is_ready
