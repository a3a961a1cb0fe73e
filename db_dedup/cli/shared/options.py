"""What the commands share: where the settings and the database are."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Annotated, Final

import typer

from db_dedup.app import Database, Deduplicator, open_deduplicator
from db_dedup.cli.shared.terminal import say
from db_dedup.config import Settings, database_url, store_url
from db_dedup.progress import Progress

DEFAULT_CONFIG: Final = Path("dedup.toml")
MOST: Final = 1_000_000_000
"""The largest number that an option takes: more than a table has rows, and no database refuses it."""
_LOST: Final = (
    "our tables are in another database: the table gets no view of its rows with their groups and can "
    "have no triggers, and a check inside a transaction of yours does not see our tables in it"
)

Config = Annotated[
    Path, typer.Option("--config", envvar="DB_DEDUP_CONFIG", help="The settings file.", dir_okay=False)
]
Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        envvar="DB_DEDUP_URL",
        help="The database; replaces the file's url. Without a file the stored recipe is used.",
        show_default=False,
    ),
]
StoreUrl = Annotated[
    str | None,
    typer.Option(
        "--store-url",
        envvar="DB_DEDUP_STORE_URL",
        help="Another database for our tables; the user's is then only read.",
        show_default=False,
    ),
]
OpenTable = Callable[[str], AbstractContextManager[Deduplicator]]
"""Opens a table by its name."""
TableName = Annotated[str, typer.Argument(metavar="TABLE", help="The watched table.")]
Texts = Annotated[
    bool,
    typer.Option(
        "--texts",
        envvar="DB_DEDUP_TEXTS",
        help="With the texts of the rows: in a table side by side, else in columns of their own.",
    ),
]
Kinds = Annotated[
    bool,
    typer.Option(
        "--kinds",
        envvar="DB_DEDUP_KINDS",
        help="Also print what kind of pair each is: kind, contained_key, other_place, form.",
    ),
]
Full = Annotated[
    bool,
    typer.Option(
        "--full", envvar="DB_DEDUP_FULL", help="In a table, show whole texts; without it, long ones are cut."
    ),
]
DuplicateLabel = Annotated[
    list[str] | None,
    typer.Option(
        "--duplicate-label",
        envvar="DB_DEDUP_DUPLICATE_LABEL",
        help="What a duplicate is called in the file; every other label then means no duplicate.",
    ),
]
Force = Annotated[
    bool, typer.Option("--force", envvar="DB_DEDUP_FORCE", help="Replace a file that is there.")
]
AsJson = Annotated[bool, typer.Option("--json", envvar="DB_DEDUP_JSON", help="Print JSON.")]


def is_given(context: typer.Context, option: str) -> bool:
    """Return whether an option was given on the command line; its variable may be meant for other commands.

    Args:
        context: of the command.
        option: the name of its parameter in Python.
    """
    source = context.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"


def load_settings(config: Path, url: str | None) -> Settings | None:
    """Return the settings of the file; None if the default file is missing and a URL is given."""
    if url and config == DEFAULT_CONFIG and not config.exists():
        return None
    return Settings.from_file(config)


def open_table(
    config: Path,
    url: str | None,
    table: str,
    progress: Progress | None = None,
    store: str | None = None,
) -> AbstractContextManager[Deduplicator]:
    """Open a table as the command's options say."""
    return table_opener(config, url, progress, store)(table)


def table_opener(
    config: Path, url: str | None, progress: Progress | None = None, store: str | None = None
) -> OpenTable:
    """Return what opens tables as the command's options say.

    The settings are read each time. A schedule with former ones would undo a scan by those of the file, and a
    worker would refuse the answer of this scan.
    """

    @contextmanager
    def open_one(table: str) -> Iterator[Deduplicator]:
        settings = load_settings(config, url)
        urls = database_url(url, settings), store_url(store, settings)
        dedup = open_deduplicator(urls[0], settings, table, progress, urls[1])
        with closing(dedup.database):
            if progress is not None and dedup.database.is_apart:
                say(_LOST)
            yield dedup

    return open_one


@contextmanager
def open_database(config: Path, url: str | None, store: str | None = None) -> Iterator[Database]:
    """Open the database as the command's options say."""
    settings = load_settings(config, url) or Settings()
    database = Database(
        database_url(url, settings),
        settings.schema_name,
        settings.prefix,
        store=store_url(store, settings),
    )
    with closing(database):
        yield database
