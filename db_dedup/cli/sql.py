"""`db-dedup sql`: the SQL that would run, without running it."""

from enum import StrEnum
from typing import Annotated

import typer

from db_dedup.cli.options import DEFAULT_CONFIG, Config, StoreUrl, Url, open_database, open_table
from db_dedup.cli.output import data_output
from db_dedup.errors import ConfigError


class Statement(StrEnum):
    """What can be shown."""

    UPGRADE = "upgrade"
    VIEW = "view"
    TRIGGERS = "triggers"


def sql(
    what: Annotated[
        Statement,
        typer.Argument(
            help="upgrade: our tables; view: the view of one table's rows; triggers: what attach makes."
        ),
    ],
    table: Annotated[
        str | None, typer.Argument(metavar="[TABLE]", help="The watched table, for view and triggers.")
    ] = None,
    config: Config = DEFAULT_CONFIG,
    url: Url = None,
    store_url: StoreUrl = None,
) -> None:
    """Print the SQL that a command would run."""
    if what is Statement.UPGRADE:
        with open_database(config, url, store_url) as database:
            data_output().write(database.upgrade_sql())
        return
    if table is None:
        raise ConfigError(f"say which table: `db-dedup sql {what} TABLE`")
    with open_table(config, url, table, store=store_url) as dedup:
        if what is Statement.TRIGGERS:
            data_output().write(dedup.database.dialect.script(dedup.trigger_statements()))
            return
        for statement in dedup.view_statements():
            data_output().write(f"{statement}\n")
