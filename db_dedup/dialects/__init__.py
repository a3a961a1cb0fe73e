"""The databases that db_dedup works in. Dialects are looked up here and nowhere else.

A dialect is one folder here and one line in the registry: `[project.entry-points."db_dedup.dialects"]` in
pyproject.toml, by the name of its SQLAlchemy dialect. All that the program knows of a database is in its
folder:

| file | holds |
|---|---|
| `__init__.py` | the class: its data, and the list of the functions below |
| `sessions.py` | URLs, sessions, transactions, locks |
| `keys.py` | row keys and values as SQL |
| `bulk.py` | writes of many rows, the queue of changes, planner statistics |
| `triggers.py` | the triggers on a user's table |
| `errors.py` | the driver's errors as ours |
| `grants.py` | GRANT statements, where the database has accounts |
| `catalogue.py` | what the database's catalogue has and SQLAlchemy's inspection does not return |
| `sql/` | statements that SQLAlchemy Core cannot say |

`base.py` is the contract. `capabilities.py` has the data, which other code reads instead of a dialect's name.
The other modules of this folder hold what several dialects share.
"""

import warnings
from functools import cache
from importlib.metadata import entry_points

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SAWarning

from db_dedup.dialects.base import Dialect
from db_dedup.dialects.other_databases import OTHER_DATABASES
from db_dedup.dialects.sessions import connect_or_explain, renew_read_only, wrong_part
from db_dedup.errors import ConfigError, MissingExtraError, UnknownNameError
from db_dedup.translation import Phrase

__all__ = ["Dialect", "dialect_for", "dialect_names", "named_dialect", "open_engine"]

_GROUP = "db_dedup.dialects"


def dialect_for(bind: Engine | Connection) -> Dialect:
    """Return the dialect of an open database.

    Raises:
        ConfigError: a kind of database that we do not work in.
    """
    return named_dialect(bind.dialect.name)


def dialect_names() -> list[str]:
    """Return the names in the registry, sorted."""
    return sorted(entry_points(group=_GROUP).names)


@cache
def named_dialect(name: str) -> Dialect:
    """Return the dialect of this name.

    Raises:
        ConfigError: a kind of database that we do not work in.
    """
    found = entry_points(group=_GROUP)
    if name not in found.names:
        if name.lower() in OTHER_DATABASES:
            raise ConfigError(OTHER_DATABASES[name.lower()])
        raise UnknownNameError(Phrase("database"), name, found.names)
    dialect = found[name].load()()
    assert isinstance(dialect, Dialect)  # noqa: S101 - an entry point may name anything
    return dialect


def open_engine(url: str, *, create: bool = False) -> Engine:
    """Return an engine whose sessions are set up for our work.

    Args:
        url: as SQLAlchemy writes it; without a driver, ours is taken.
        create: let SQLite make a file that is not there.

    Raises:
        ConfigError: the URL cannot be read, names an unknown kind of database, or its driver is missing.
        DatabaseUnavailableError: it names a file that is not there.
    """
    parsed = _parse(url)
    dialect = named_dialect(parsed.get_backend_name())
    if "+" not in parsed.drivername:
        parsed = parsed.set(drivername=f"{parsed.drivername}+{dialect.default_driver}")
    parsed = dialect.engine_url(parsed, create)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", SAWarning)  # for SQLite: a part of the URL has no effect
            engine = create_engine(parsed, hide_parameters=True, **dialect.engine_options)
    except ModuleNotFoundError as error:
        if parsed.get_driver_name() != dialect.default_driver:
            raise _unusable_driver(parsed, dialect) from None
        raise MissingExtraError(str(error.name), dialect.extra or "") from None
    except NoSuchModuleError:
        raise ConfigError(
            "unknown driver in {driver!r}: write {database}+{default_driver}://...",
            driver=parsed.drivername,
            database=parsed.get_backend_name(),
            default_driver=dialect.default_driver,
        ) from None
    except ImportError:
        raise _unusable_driver(parsed, dialect) from None
    except (ArgumentError, TypeError, ValueError, SAWarning) as error:
        raise wrong_part(parsed, error) from None
    if engine.dialect.is_async:
        raise _unusable_driver(parsed, dialect)
    event.listen(engine, "do_connect", connect_or_explain(parsed, dialect.extra))
    event.listen(engine, "handle_error", renew_read_only(dialect.translate_error))
    dialect.prepare_engine(engine)
    return engine


def _unusable_driver(url: URL, dialect: Dialect) -> ConfigError:
    return ConfigError(
        "the driver {driver} cannot be used here: write {database}+{default_driver}://...",
        driver=url.drivername,
        database=url.get_backend_name(),
        default_driver=dialect.default_driver,
    )


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
        # An @ in the password ends it, unless it is percent-encoded: the rest would be shown as the host.
        if parsed.host is not None and url.partition("?")[0].count("@") > 1:
            raise ValueError
    except (ArgumentError, ValueError):
        raise ConfigError(
            "the database URL cannot be read: write e.g. sqlite:///petitions.db or "
            "postgresql://user:password@host/database, special characters percent-encoded"
        ) from None
    return parsed
