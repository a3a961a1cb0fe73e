"""`db-dedup upgrade`: our tables and views in the user's database."""

from typing import Annotated

import typer

from db_dedup.cli.shared.options import DEFAULT_CONFIG, Config, StoreUrl, Url, open_database
from db_dedup.cli.shared.terminal import say


def upgrade(
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
    with open_database(config, url, store_url) as database:
        if sql:
            typer.echo(database.upgrade_sql(), nl=False)
        elif to is not None:
            database.downgrade(to)
            say("the tables of db_dedup are at revision {revision}", revision=to)
        else:
            say("the tables of db_dedup are at revision {revision}", revision=database.upgrade())
