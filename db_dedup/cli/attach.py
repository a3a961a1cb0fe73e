"""`db-dedup attach`: triggers that queue what changes in a table."""

from typing import Annotated

import typer

from db_dedup.cli.shared.options import DEFAULT_CONFIG, Config, StoreUrl, TableName, Url, open_table
from db_dedup.cli.shared.terminal import say


def attach(
    table: TableName,
    config: Config = DEFAULT_CONFIG,
    url: Url = None,
    store_url: StoreUrl = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", envvar="DB_DEDUP_DRY_RUN", help="Only print the SQL that would run.")
    ] = False,
) -> None:
    """Make triggers on TABLE that queue its changes, or repair dropped, disabled or altered ones."""
    with open_table(config, url, table, store=store_url) as dedup:
        statements = dedup.attach(dry_run=dry_run)
        if not statements:
            say("{table} is attached: its triggers are as they were made", table=table)
        elif dry_run:
            typer.echo(dedup.database.dialect.script(statements), nl=False)
        else:
            say("{table} is attached: from now on its changes are queued", table=table)
