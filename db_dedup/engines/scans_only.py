"""What an engine that offers only scans does about the other methods of `engines.base.Engine`."""

from typing import NoReturn

from db_dedup.errors import ConfigError
from db_dedup.translation import Phrase


class ScansOnly:
    """The other methods of an engine that offers only scans: each raises ConfigError."""

    def increment(self, *_: object, **__: object) -> NoReturn:
        """Refuse incremental processing."""
        raise _unsupported(Phrase("incremental processing"))

    def lookup(self, *_: object, **__: object) -> NoReturn:
        """Refuse checks of records."""
        raise _unsupported(Phrase("checks of records"))

    def expanded_pairs(self, *_: object, **__: object) -> NoReturn:
        """Refuse to list the pairs that exact duplicates and abridged groups imply."""
        raise _unsupported(Phrase("expanded pairs"))


def _unsupported(what: str) -> ConfigError:
    return ConfigError("this engine offers scans only, not {what}: use the embedded engine", what=what)
