"""`db-dedup upgrade`: our tables and views in the user's database."""

from typing import Annotated

import typer

from db_dedup.cli.shared.options import DEFAULT_CONFIG, Config, StoreUrl, Url, is_given, open_database
from db_dedup.cli.shared.terminal import say
from db_dedup.errors import ConfigError


def upgrade(
    context: typer.Context,
    config: Config = DEFAULT_CONFIG,
    url: Url = None,
    store_url: StoreUrl = None,
    sql: Annotated[
        bool, typer.Option("--sql", envvar="DB_DEDUP_SQL", help="Print the SQL instead of running it.")
    ] = False,
    to: Annotated[
        str | None,
        typer.Option(envvar="DB_DEDUP_TO", help="Go back to an older revision; base removes all tables."),
    ] = None,
) -> None:
    """Make our tables and views in the database, or bring them up to date."""
    if sql and is_given(context, "to"):
        raise ConfigError("--sql prints the SQL that makes our tables: leave --to out")
    with open_database(config, url, store_url) as database:
        if sql:
            typer.echo(database.upgrade_sql(), nl=False)
        elif to is not None:
            database.downgrade(to)
            say("the tables of db_dedup are at revision {revision}", revision=to)
        else:
            say("the tables of db_dedup are at revision {revision}", revision=database.upgrade())
