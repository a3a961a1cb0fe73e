"""Which errors the changes of a batch may be the cause of, rather than the database."""

from collections.abc import Sequence
from typing import Final

from db_dedup.dialects.errors import is_of_a_row
from db_dedup.errors import StatementEndedError, TooMuchAtOnceError
from db_dedup.jobs.worker.driver_errors import TranslateError, translate_driver_error
from db_dedup.store.changes import Change

_ENDED_IN_A_ROW: Final = 3


class BatchFaults:
    """Judges the errors of the batches of one table.

    Attributes:
        was_too_much: some batch needed more memory than there is, or more than a statement may use.
    """

    def __init__(self, translate: TranslateError) -> None:
        """Take what gives a driver's error in the words of its dialect."""
        self._translate = translate
        self.was_too_much = False
        self._ended_batches = 0

    def are_of_changes(self, error: Exception, taken: Sequence[Change]) -> bool:
        """Return whether the changes of a batch may be the cause of its error.

        Args:
            error: what ended the batch.
            taken: the changes that the batch had taken by then.
        """
        if not taken:
            return False
        if is_of_a_row(error):
            return True
        translated = translate_driver_error(error, self._translate)
        if isinstance(translated, TooMuchAtOnceError):
            self.was_too_much = True
            return True
        # A server may restart for other reasons, but hardly several times in a row during the same changes.
        self._ended_batches += isinstance(translated, StatementEndedError)
        return isinstance(translated, StatementEndedError) and self._ended_batches >= _ENDED_IN_A_ROW

    def reset(self) -> None:
        """Note that a batch was handled."""
        self._ended_batches = 0
