"""`db-dedup sql`: the SQL that would run, without running it."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from db_dedup.app.grants import grant_statements
from db_dedup.cli.shared.options import (
    DEFAULT_CONFIG,
    Config,
    StoreUrl,
    Url,
    load_settings,
    open_database,
    open_table,
)
from db_dedup.cli.shared.output import data_output
from db_dedup.config import WatchedTable, watched_table
from db_dedup.dialects.grants import ACCOUNT_ROLES, AccountRole
from db_dedup.errors import ConfigError


class Statement(StrEnum):
    """What can be shown."""

    UPGRADE = "upgrade"
    VIEW = "view"
    TRIGGERS = "triggers"
    GRANTS = "grants"


def sql(
    what: Annotated[
        Statement,
        typer.Argument(
            help="upgrade: our tables; view: the view of one table's rows; triggers: what attach makes; "
            "grants: the least rights of each account, for an administrator."
        ),
    ],
    table: Annotated[
        str | None,
        typer.Argument(metavar="[TABLE]", help="The watched table, for view, triggers and grants."),
    ] = None,
    accounts: Annotated[
        list[str] | None,
        typer.Option(
            "--account",
            envvar="DB_DEDUP_ACCOUNT",
            metavar="PART=NAME",
            help="For grants: the account of a part, such as scanner=etl or, on MariaDB and MySQL, "
            "scanner=etl@host; may be given again. Left out, dedup_owner, dedup_scanner and so on. On "
            "PostgreSQL table_owner=NAME is the role that owns TABLE, else looked up.",
            show_default=False,
        ),
    ] = None,
    parts: Annotated[
        list[AccountRole] | None,
        typer.Option(
            "--part",
            envvar="DB_DEDUP_PART",
            help="For grants: only this part; may be given again.",
            show_default=False,
        ),
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
        raise ConfigError("say which table: `db-dedup sql {what} TABLE`", what=what)
    if what is Statement.GRANTS:
        with open_database(config, url, store_url) as database:
            watched = _watched(config, url, table)
            names = dict(map(_account, accounts or ()))
            data_output().write(grant_statements(database, watched, names, parts or ACCOUNT_ROLES))
        return
    with open_table(config, url, table, store=store_url) as dedup:
        if what is Statement.TRIGGERS:
            data_output().write(dedup.database.dialect.script(dedup.trigger_statements()))
            return
        for statement in dedup.view_statements():
            data_output().write(f"{statement}\n")


def _watched(config: Path, url: str | None, table: str) -> WatchedTable:
    """Return the settings of the file; without a file the table of that name, whatever its columns."""
    settings = load_settings(config, url)
    return settings.watched(table) if settings else watched_table(table, {"columns": {"*": 1}})


def _account(given: str) -> tuple[str, str]:
    part, _, name = given.partition("=")
    if not name:
        raise ConfigError("--account {given}: write PART=NAME, such as scanner=etl", given=given)
    return part, name
