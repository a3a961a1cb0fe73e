"""What is wrong with a URL, which in part shows only when its driver connects: a line, without any value."""

from collections.abc import Callable, Collection
from typing import Any

from sqlalchemy import URL
from sqlalchemy.engine.interfaces import DBAPIConnection, Dialect

from db_dedup.errors import ConfigError

_MISUSED = (TypeError, ValueError, AttributeError, LookupError, OSError)
"""What drivers raise for an option they do not know or cannot read; a server's refusal is none of them."""


def connect_to(url: URL, extra: str | None) -> Callable[..., DBAPIConnection]:
    """A listener to `do_connect`, which connects or says what does not serve.

    Args:
        url: Its options may be the fault.
        extra: Ours that brings the driver with all that it may need.
    """

    def connect(dialect: Dialect, _record: object, arguments: list[Any], options: dict[str, Any]) -> Any:
        try:
            return dialect.connect(*arguments, **options)
        except _MISUSED as error:
            raise wrong_part(url, error) from None
        except RuntimeError as error:  # PyMySQL's, of a package that it needs for some servers only
            raise ConfigError(f'{error}: pip install "db-dedup[{extra}]"') from None

    return connect


def refuse_options(url: URL, names: Collection[str]) -> None:
    """Raise ConfigError for the first option of the URL that is one of these."""
    for name in url.query:
        if name in names:
            raise ConfigError(f"the database URL must not set {name}: our sessions rely on how it is")


def wrong_part(url: URL, error: Exception) -> ConfigError:
    """What to say of a URL that its driver does not take: options by name, as a value may be a password."""
    options = ", ".join(sorted(url.query)) or "nothing"
    reason = f": {error}" if isinstance(error, TypeError) else ""
    if isinstance(error, OSError) and error.strerror:
        reason = f": {error.strerror}"
    return ConfigError(
        f"the database URL has a part that {url.drivername} does not take{reason} "
        f"(options after its question mark: {options})"
    )
