"""The watched tables as the service opens them: each once, for all requests."""

from dataclasses import dataclass

from db_dedup.app import Database, Deduplicator
from db_dedup.app.answer_pages import AnswerPages
from db_dedup.app.review_pages import ReviewPages
from db_dedup.app.review_samples import ReviewSamples
from db_dedup.config import Settings
from db_dedup.errors import ConfigError, DedupError, UnknownNameError
from db_dedup.translation import Phrase


@dataclass(frozen=True)
class ServedTable:
    """One watched table."""

    dedup: Deduplicator
    pages: AnswerPages
    review: ReviewPages
    samples: ReviewSamples


class Tables:
    """The tables of the settings file; without a file, all that are watched."""

    def __init__(self, database: Database, settings: Settings | None) -> None:
        self.database = database
        self._watched = settings.tables if settings is not None and settings.tables else None
        self._opened: dict[str, ServedTable] = {}

    def names(self) -> list[str]:
        """Return the names of the tables that are served."""
        return sorted(self._watched) if self._watched is not None else self.database.watched_names()

    def find(self, name: str) -> ServedTable:
        """Return a table.

        Raises:
            UnknownNameError: it is not served.
        """
        found = self._opened.get(name)
        if found is None:
            known = self.names()
            if name not in known:
                raise UnknownNameError(Phrase("watched table"), name, known)
            given = self._watched or {}
            # By settings from a file, a check refuses to work if the last scan had others.
            dedup = Deduplicator(self.database, given.get(name, name))
            of_table = self.database, name
            served = ServedTable(
                dedup, AnswerPages(*of_table), ReviewPages(*of_table), ReviewSamples(*of_table)
            )
            found = self._opened.setdefault(name, served)
        return found

    def make_ready(self) -> dict[str, DedupError]:
        """Load and compile what a first check of each table needs.

        Returns:
            Name -> why its table cannot be checked now; "" for a fault of the database itself.
        """
        faults: dict[str, DedupError] = {}
        try:
            names = self.names()
        except DedupError as error:
            return {"": error}
        for name in names:
            if "/" in name:  # servers decode %2F before they look for the route
                faults[name] = ConfigError(
                    "a name in an address has no slash: watch the table under another name, with "
                    "table = {name!r} in the settings file",
                    name=name,
                )
                continue
            try:
                self.find(name).dedup.make_ready()
            except DedupError as error:
                faults[name] = error
        return faults
