"""Every error db_dedup raises on purpose: one base, families below it.

The message is one line that names the fault and the fix. `is_transient` alone decides whether a retry makes
sense; `exit_code` is what the command line returns (1 failed, 2 wrong usage).
"""

import re
from collections.abc import Iterable
from difflib import get_close_matches

_PASSWORD = re.compile(r"(://[^:/@\s]*:)[^\s'\"]*(?=@)|(\b(?:password|passwd)=)[^&\s'\"]*")


class DedupError(Exception):
    """Something went wrong that the message explains."""

    is_transient = False
    exit_code = 1

    def __str__(self) -> str:
        """One line: what cannot be printed stands as its escape, and a URL's password as asterisks."""
        line = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in super().__str__())
        return _PASSWORD.sub(r"\1\2***", line)


class ConfigError(DedupError):
    """The settings cannot be used as they stand."""

    exit_code = 2


class UnknownNameError(ConfigError):
    """A name that does not exist; the message lists the nearest good ones."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        self.kind, self.name, self.known = kind, name, sorted(known)
        near = get_close_matches(name, self.known, n=5, cutoff=0.4) or self.known[:10]
        hint = f"did you mean {', '.join(near)}?" if near else "there is none"
        super().__init__(f"unknown {kind} {name!r}: {hint}")


class MissingExtraError(ConfigError):
    """A driver or another library that an extra brings is not installed."""

    def __init__(self, module: str, extra: str) -> None:
        self.module, self.extra = module, extra
        super().__init__(f'{module} is not installed: pip install "db-dedup[{extra}]"')


class DatabaseError(DedupError):
    """The database refused; the driver's own words follow."""


class DatabaseUnavailableError(DatabaseError):
    """The database cannot be reached, or is busy, right now."""

    is_transient = True


class TemporaryFolderError(DedupError):
    """What a scan keeps aside on disk cannot be written there."""


class SchemaMissingError(DedupError):
    """Our tables are not there, or older than this program."""


class NotScannedError(DedupError):
    """The table has no finished scan yet."""


class RecipeDiffersError(DedupError):
    """The settings file and the stored recipe say different things."""


class ScanRunningError(DedupError):
    """Another scan of the same table is at work."""

    is_transient = True


class TableBusyError(DedupError):
    """Others have a watched table to themselves right now: roll back, and try again."""

    is_transient = True


class RowKeyError(DedupError):
    """A row's key cannot be stored: too long, or not unique as text."""


class RowNotFoundError(DedupError):
    """The table has no row of that key."""
