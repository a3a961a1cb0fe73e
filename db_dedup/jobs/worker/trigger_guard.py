"""The worker's check of the triggers of its table: those that miss changes are made again."""

import logging
import time
from collections.abc import Callable
from typing import Final

from db_dedup.errors import DedupError, TriggerError
from db_dedup.jobs.objects.attachment import AttachmentReport, AttachmentState
from db_dedup.store.watched_tables import StoredTable

logger = logging.getLogger(__name__)

_SECONDS_BETWEEN_LOOKS: Final = 60.0
_SOUND: Final = (AttachmentState.INTACT, AttachmentState.NOT_ATTACHED, AttachmentState.UNKNOWN)


class TriggerGuard:
    """Compares the triggers of one table with the database's catalogue.

    It does so at first, after each change of what is stored of them, and once a minute, since nothing reports
    that somebody has dropped or disabled one.
    """

    def __init__(self, name: str, look: Callable[[], AttachmentReport], mend: Callable[[], object]) -> None:
        """Prepare.

        Args:
            name: of the watched table.
            look: how its triggers are now.
            mend: makes them again, if the table is attached.
        """
        self._name, self._look, self._mend = name, look, mend
        self._seen: tuple[object, ...] | None = None
        self._seen_at = 0.0

    def mends(self, stored: StoredTable) -> bool:
        """Check the triggers if a check is due; return whether they had to be made again.

        Raises:
            TriggerError: this account has no right to make them.
            DedupError: a transient one where the table is busy.
        """
        now = (stored.attached_at, stored.trigger_digest, stored.recipe)
        if now == self._seen and time.monotonic() - self._seen_at < _SECONDS_BETWEEN_LOOKS:
            return False
        report = self._look()
        if report.state in _SOUND:
            self._seen, self._seen_at = now, time.monotonic()
            return False
        fault = "; ".join(report.differences)
        logger.warning("the triggers of %s miss changes (%s): making them again", self._name, fault)
        try:
            self._mend()
        except DedupError as error:
            if error.is_transient:
                raise
            raise TriggerError(
                "the triggers of {name!r} miss changes ({fault}), and this account cannot make them again "
                "({error}): run `db-dedup attach {name}` as one that can",
                name=self._name,
                fault=fault,
                error=error,
            ) from error
        return True
