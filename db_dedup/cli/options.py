"""What the commands share: where the settings and the database are."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, Final

import typer

from db_dedup.app import Database, Deduplicator, open_deduplicator
from db_dedup.cli.terminal import say
from db_dedup.config import Settings, database_url, store_url
from db_dedup.progress import Progress

DEFAULT_CONFIG: Final = Path("dedup.toml")
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
TableName = Annotated[str, typer.Argument(metavar="TABLE", help="The watched table.")]
AsJson = Annotated[bool, typer.Option("--json", envvar="DB_DEDUP_JSON", help="Print JSON.")]


def load_settings(config: Path, url: str | None) -> Settings | None:
    """The settings file; None where only the default one is missing and a URL says enough."""
    if url and config == DEFAULT_CONFIG and not config.exists():
        return None
    return Settings.from_file(config)


@contextmanager
def open_table(
    config: Path,
    url: str | None,
    table: str,
    progress: Progress | None = None,
    store: str | None = None,
) -> Iterator[Deduplicator]:
    """A table as the command's options say."""
    settings = load_settings(config, url)
    dedup = open_deduplicator(
        database_url(url, settings), settings, table, progress, store_url(store, settings)
    )
    with closing(dedup.database):
        if progress is not None and dedup.database.is_apart:
            say(_LOST)
        yield dedup


@contextmanager
def open_database(config: Path, url: str | None, store: str | None = None) -> Iterator[Database]:
    """The database as the command's options say."""
    settings = load_settings(config, url) or Settings()
    database = Database(
        database_url(url, settings),
        settings.schema_name,
        settings.prefix,
        store=store_url(store, settings),
    )
    with closing(database):
        yield database
