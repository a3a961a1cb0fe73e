"""`db-dedup init`: look at a database, write a sensible settings file."""

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer
from sqlalchemy import URL, make_url
from tomlkit import comment, document, dumps, inline_table, nl, table
from tomlkit.items import Table
from tomlkit.toml_document import TOMLDocument

from db_dedup.app import Database
from db_dedup.cli.options import DEFAULT_CONFIG, Config, Url
from db_dedup.cli.terminal import say
from db_dedup.config import database_url
from db_dedup.errors import ConfigError
from db_dedup.store.suggestion import Suggestion


def init(
    config: Config = DEFAULT_CONFIG,
    url: Url = None,
    tables: Annotated[
        list[str] | None,
        typer.Option(
            "--table",
            envvar="DB_DEDUP_TABLE",
            help="Only this table; may be given again.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", envvar="DB_DEDUP_DRY_RUN", help="Print the file instead of writing it."),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", envvar="DB_DEDUP_FORCE", help="Replace a file that is there.")
    ] = False,
) -> None:
    """Inspect a database and write a settings file: key and order column, short values, long texts."""
    if config.exists() and not force and not dry_run:
        raise ConfigError(f"{config} is there already: --force replaces it, --dry-run only prints")
    full_url = database_url(url, None)
    with closing(Database(full_url)) as database:
        suggestions = database.suggest(tables or None)
    if not suggestions:
        raise ConfigError(
            "no table with a key and a text column was found: "
            "name one with --table, or write the file by hand"
        )
    text = dumps(settings_document(full_url, suggestions))
    if dry_run:
        typer.echo(text, nl=False)
        return
    _write(config, text)
    say(f"wrote {config} for {', '.join(s.table for s in suggestions)}; read it, then: db-dedup upgrade")


def settings_document(url: str, suggestions: list[Suggestion]) -> TOMLDocument:
    """The settings file as TOML; a password stays out of it."""
    parsed = make_url(url)
    without_password = _without_password(parsed)
    doc = document()
    database = table()
    if without_password != parsed:
        database.add(comment("The password is not kept here: set DB_DEDUP_URL to the whole URL."))
    database.add("url", without_password.render_as_string(hide_password=False))
    doc.add("database", database)
    watched = table(is_super_table=True)
    for suggestion in suggestions:
        watched.add(suggestion.table, _table_section(suggestion))
    doc.add("tables", watched)
    return doc


def _without_password(url: URL) -> URL:
    """The drivers take one from the query, too."""
    url = url.difference_update_query(("password", "passwd"))
    return URL.create(url.drivername, url.username, None, url.host, url.port, url.database, url.query)


def _table_section(suggestion: Suggestion) -> Table:
    section = table()
    key = suggestion.key
    section.add("key", key[0] if len(key) == 1 else list(key))
    if suggestion.order:
        section.add("order", suggestion.order)
    section.add("preset", "balanced")
    section.add(nl())
    columns = table()
    for name, kind in suggestion.columns.items():
        spec = inline_table()
        spec.append("kind", kind)
        spec.append("weight", 1 if kind == "text" else 2)
        columns.add(name, spec)
    section.add("columns", columns)
    return section


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from None
