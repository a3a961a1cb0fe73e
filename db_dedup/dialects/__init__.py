"""The databases we work in. This is the one place where a dialect is looked up."""

import warnings
from functools import cache
from importlib.metadata import entry_points

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SAWarning

from db_dedup.dialects.base import Capabilities, Dialect
from db_dedup.dialects.connecting import connect_to, wrong_part
from db_dedup.dialects.other_databases import OTHER_DATABASES
from db_dedup.errors import ConfigError, MissingExtraError, UnknownNameError

__all__ = ["Capabilities", "Dialect", "dialect_for", "open_engine"]

_GROUP = "db_dedup.dialects"


def dialect_for(bind: Engine | Connection) -> Dialect:
    """The dialect of a database that is open.

    Raises:
        ConfigError: a kind of database that we do not work in.
    """
    return _dialect(bind.dialect.name)


def open_engine(url: str, *, create: bool = False) -> Engine:
    """An engine whose sessions are set up for our work.

    Args:
        url: as SQLAlchemy writes it; without a driver, ours is taken.
        create: let SQLite make a file that is not there.

    Raises:
        ConfigError: the URL cannot be read, names an unknown kind of database, or its driver is missing.
        DatabaseUnavailableError: it names a file that is not there.
    """
    parsed = _parse(url)
    dialect = _dialect(parsed.get_backend_name())
    if "+" not in parsed.drivername:
        parsed = parsed.set(drivername=f"{parsed.drivername}+{dialect.default_driver}")
    parsed = dialect.engine_url(parsed, create)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", SAWarning)  # SQLite's, of a part that would change nothing
            engine = create_engine(parsed, hide_parameters=True, **dialect.engine_options())
    except ModuleNotFoundError as error:
        if parsed.get_driver_name() != dialect.default_driver:
            raise _unusable_driver(parsed, dialect) from None
        raise MissingExtraError(str(error.name), dialect.extra or "") from None
    except NoSuchModuleError:
        raise ConfigError(
            f"unknown driver in {parsed.drivername!r}: "
            f"write {parsed.get_backend_name()}+{dialect.default_driver}://..."
        ) from None
    except ImportError:
        raise _unusable_driver(parsed, dialect) from None
    except (ArgumentError, TypeError, ValueError, SAWarning) as error:
        raise wrong_part(parsed, error) from None
    if engine.dialect.is_async:
        raise _unusable_driver(parsed, dialect)
    event.listen(engine, "do_connect", connect_to(parsed, dialect.extra))
    dialect.prepare_engine(engine)
    return engine


@cache
def _dialect(name: str) -> Dialect:
    found = entry_points(group=_GROUP)
    if name not in found.names:
        if name.lower() in OTHER_DATABASES:
            raise ConfigError(OTHER_DATABASES[name.lower()])
        raise UnknownNameError("database", name, found.names)
    dialect = found[name].load()()
    assert isinstance(dialect, Dialect)  # noqa: S101 - an entry point may name anything
    return dialect


def _unusable_driver(url: URL, dialect: Dialect) -> ConfigError:
    return ConfigError(
        f"the driver {url.drivername} cannot be used here: "
        f"write {url.get_backend_name()}+{dialect.default_driver}://..."
    )


def _parse(url: str) -> URL:
    try:
        return make_url(url)
    except (ArgumentError, ValueError):
        raise ConfigError(
            "the database URL cannot be read: write e.g. sqlite:///petitions.db or "
            "postgresql://user:password@host/database, special characters percent-encoded"
        ) from None
