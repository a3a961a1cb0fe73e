"""Every error db_dedup raises on purpose: one base, families below it.

The message is one line that names the fault and the fix. `is_transient` alone decides whether a retry makes
sense; `exit_code` is what the command line returns (1 failed, 2 wrong usage).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, time
from difflib import get_close_matches
from typing import Any

from db_dedup.translation import Phrase, Translatable, filled, formatted, joined, lookup

_ALIKE = 0.6
"""The least similarity, by `difflib`, of a known name that is suggested for an unknown one."""
_LISTED = 10
_PLAIN = (str, int, float, bytes, date, time, Translatable, type(None))
"""Types of fields that every process can unpickle."""
_PASSWORD = re.compile(r"(://[^:/@\s]*:)[^\s'\"]*(?=@)|(\b(?:password|passwd)=)[^&\s'\"]*")


class DedupError(Translatable, Exception):
    """Something went wrong that the message explains.

    Attributes:
        template: the message without its values, the same text for every error of its place in the code:
            what a translation is looked up by.
        fields: the values by their names in the template, as they were given: `str` of the error, and not
            its fields, escapes what cannot be printed and hides a URL's password.
    """

    is_transient = False
    exit_code = 1

    def __init__(self, template: str = "", /, **fields: object) -> None:
        """Fill in the message.

        Args:
            template: the message, for `str.format`. Without fields it is taken as it is, braces included.
            fields: the values by their names in the template.
        """
        self.template, self.fields = template, fields
        super().__init__(formatted(template, fields) if fields else template)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle and copy the finished message; a field that is no plain value becomes its text."""
        plain = {name: v if isinstance(v, _PLAIN) else str(v) for name, v in self.fields.items()}
        return _restored, (type(self), self.args), {**self.__dict__, "fields": plain}

    def __str__(self) -> str:
        """Return the message on one line, with escapes for unprintable characters, and passwords hidden."""
        return _one_safe_line(super().__str__())

    def in_language(self, language: str) -> str:
        """Return the message in a language, "en" or "zh"; `str` of the error is English."""
        if not self.template:
            return str(self)
        if not self.fields and isinstance(self.template, Phrase):
            return _one_safe_line(self.template.in_language(language))
        return _one_safe_line(filled(lookup(self.template, language), self.fields, language))


def _one_safe_line(message: str) -> str:
    line = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in message)
    return _PASSWORD.sub(r"\1\2***", line)


def _restored(kind: type[DedupError], args: tuple[object, ...]) -> DedupError:
    """Make an error of a finished message, without its class's own `__init__`."""
    return kind.__new__(kind, *args)


class ConfigError(DedupError):
    """The settings cannot be used as they stand."""

    exit_code = 2


class InvalidArgumentError(ConfigError, ValueError, TypeError):
    """An argument of a call from Python has a wrong type or a wrong value."""


class UnknownNameError(ConfigError):
    """A name that does not exist; the message lists names like it.

    Args:
        kind: what it should be the name of; a `Phrase`, so that it is translated with the message.
        name: the unknown one.
        known: the good ones.
        lists_others: where no good name is like it, list the first good names.
        most: how many of them.
        if_none: what to say where there is no good name.
    """

    def __init__(
        self,
        kind: Phrase,
        name: object,
        known: Iterable[str],
        *,
        lists_others: bool = True,
        most: int = _LISTED,
        if_none: Phrase | None = None,
    ) -> None:
        self.kind, self.name, self.known = kind, name, sorted(known)
        self.near = get_close_matches(str(name), self.known, n=5, cutoff=_ALIKE)
        if self.near:
            near = joined(", ", self.near)
            super().__init__("unknown {kind} {name!r}: did you mean {near}?", kind=kind, name=name, near=near)
        elif lists_others:
            known = joined(", ", self.known[:most]) or if_none or Phrase("none")
            super().__init__("unknown {kind} {name!r}: there is {known}", kind=kind, name=name, known=known)
        else:
            super().__init__("unknown {kind} {name!r}", kind=kind, name=name)


class MissingExtraError(ConfigError):
    """A driver or another library that an extra brings is not installed."""

    def __init__(self, module: str, extra: str) -> None:
        self.module, self.extra = module, extra
        super().__init__(
            '{module} is not installed: pip install "db-dedup[{extra}]"', module=module, extra=extra
        )


class MissingJarError(ConfigError):
    """A segmenter runs in Java, and Java or its jar is not there."""


class DatabaseError(DedupError):
    """The database refused; the driver's own words follow."""


class DatabaseUnavailableError(DatabaseError):
    """The database cannot be reached, or is busy, right now."""

    is_transient = True


class ReadOnlyDatabaseError(DatabaseUnavailableError):
    """The server takes no writes right now, such as one that was the primary until another took over.

    A session may stay read-only after the server has become writable: a retry needs a new one.
    """


class ClusterUnavailableError(DedupError):
    """The master of a cluster does not answer right now."""

    is_transient = True


class StatementEndedError(DatabaseUnavailableError):
    """The server ended a statement, or the connection while a statement ran.

    A retry helps where the server was the cause. Where the same work is ended again and again, the work is:
    it takes too long, or more memory than the server has.
    """


class EvaluationError(DatabaseError):
    """The database could not compute an expression, such as the `where`, from the values of some row."""


class SegmenterError(DedupError):
    """A segmenter failed on some text.

    The message has only the type of the segmenter's own error, whose message may show the text.
    """


class DiskFullError(DatabaseError):
    """A disk that the database writes to is full; the message says which."""


class TooMuchAtOnceError(DedupError):
    """A statement is too large for the database, or some work for the memory; a part of it may not be."""


class FaultyTablesError(DedupError):
    """Some of several tables could not be worked on."""

    def __init__(self, faults: Mapping[str, DedupError]) -> None:
        self.faults = dict(faults)
        listed = [Phrase("{name}: {fault}", name=name, fault=fault) for name, fault in faults.items()]
        super().__init__("{faults}", faults=joined("; ", listed))


class TemporaryFolderError(DedupError):
    """What a scan keeps aside on disk cannot be written there."""


class SchemaMissingError(DedupError):
    """Our tables are not there, or older than this program."""


class NotScannedError(DedupError):
    """The table has no finished scan yet."""


class TriggerError(DedupError):
    """The triggers of a table are missing, disabled, changed, or made for other settings."""


_GONE = (
    "the table {table!r} was scanned and is no longer in the database: "
    'with another name now, set table = "..." under [tables.{name}] and scan; dropped for good, '
    "`db-dedup detach {name}` ends its queue, `db-dedup uninstall` drops the answers of all tables"
)
_GONE_OR_RENAMED = (
    "the table {table!r} was scanned and is no longer in the database (renamed? there is {near}): "
    'with another name now, set table = "..." under [tables.{name}] and scan; dropped for good, '
    "`db-dedup detach {name}` ends its queue, `db-dedup uninstall` drops the answers of all tables"
)


class TableGoneError(DedupError):
    """A table of the user's that was scanned is no longer in the database."""

    def __init__(self, name: str, table: str, near: Iterable[str] = ()) -> None:
        """Say what to do.

        Args:
            name: that it is watched under.
            table: that it had in the database.
            near: tables that are there and have a name like it.
        """
        self.name, self.table = name, table
        tables = ", ".join(near)
        template = _GONE_OR_RENAMED if tables else _GONE
        super().__init__(template, name=name, table=table, near=tables)


class RecipeDiffersError(DedupError):
    """The settings file and the stored recipe say different things."""


_MADE_BY_NEWER = (
    "the stored answer of {table!r} was made by a newer version of db-dedup "
    "(recipe version {made_by}, this one computes {computed}): upgrade db-dedup here"
)
_MADE_BY_OLDER = (
    "the stored answer of {table!r} was made by an older version of db-dedup "
    "(recipe version {made_by}, this one computes {computed}): run `db-dedup scan {table}`"
)


class OutdatedRecipeError(DedupError):
    """The stored answer was made by another version of db-dedup, which computes other fingerprints."""

    def __init__(self, table: str, made_by: int, computed: int) -> None:
        self.table, self.made_by, self.computed = table, made_by, computed
        super().__init__(
            _MADE_BY_NEWER if made_by > computed else _MADE_BY_OLDER,
            table=table,
            made_by=made_by,
            computed=computed,
        )


class FrameListError(DedupError):
    """The frozen list of frames of the recipe that serves cannot be used."""

    def __init__(self, table: str, state: str) -> None:
        """Say what to do.

        Args:
            table: the watched table.
            state: "damaged" or "missing".
        """
        self.table, self.state = table, state
        said = {"damaged": Phrase("damaged"), "missing": Phrase("missing")}
        super().__init__(
            "the stored list of frames of {table!r} is {state}: run `db-dedup scan {table} --rebuild`",
            table=table,
            state=said.get(state, state),
        )


class ScanRunningError(DedupError):
    """Another scan of the same table is running."""

    is_transient = True


class TableBusyError(DedupError):
    """A watched table cannot be locked or written right now: roll back, and try again."""

    is_transient = True


class ReservationExpiredError(DedupError):
    """A reservation has ended before it was confirmed: check the record again."""


class RowKeyError(DedupError):
    """A row's key cannot be stored: too long, or not unique as text."""


class RowNotFoundError(DedupError):
    """The table has no row of that key."""


class DuplicateError(DedupError):
    """An application was about to store duplicates, which the guard of its model does not allow.

    Nothing was sent to the database; the transaction goes on.

    Attributes:
        found: a `FoundDuplicate` for each of the objects; empty in a copy of the error.
    """

    def __init__(self, table: str, found: Sequence[Any], rows: str) -> None:
        """Say which rows there are already.

        Args:
            table: the watched table.
            found: what was found of each object.
            rows: the row keys, in words.
        """
        self.found = tuple(found)
        super().__init__("a duplicate was not stored in {table!r}: {rows}", table=table, rows=rows)

    @property
    def matches(self) -> list[Any]:
        """The stored rows that the objects duplicate, each a `Match`."""
        return [match for each in self.found for match in each.matches]

    def __reduce__(self) -> tuple[object, ...]:
        """Leave out the application's objects, which may not be copied."""
        kind, arguments, state = super().__reduce__()
        return kind, arguments, {**state, "found": ()}  # type: ignore[dict-item]
