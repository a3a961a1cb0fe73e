"""`db-dedup uninstall`: everything of ours out of the user's database."""

from typing import Annotated, Final

import typer

from db_dedup.app import Database
from db_dedup.cli.shared.options import DEFAULT_CONFIG, Config, StoreUrl, Url, open_database
from db_dedup.cli.shared.terminal import say
from db_dedup.present.visible import visible
from db_dedup.schema.schema_ddl import version_table
from db_dedup.translation import tr

_DROP_ONE: Final = "Drop this table? The answer is lost, no row of yours is."
_DROP_ALL: Final = "Drop these {names:,} tables, views and triggers? The answer is lost, no row of yours is."


def uninstall(
    config: Config = DEFAULT_CONFIG,
    url: Url = None,
    store_url: StoreUrl = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", envvar="DB_DEDUP_DRY_RUN", help="Only say what would be dropped.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", envvar="DB_DEDUP_YES", help="Do not ask.")] = False,
) -> None:
    """Drop every table, view and trigger of ours; the user's rows are not touched."""
    with open_database(config, url, store_url) as database:
        names = database.installed_names()
        if not names:
            say("nothing of db_dedup is in this database")
            return
        for name in names:
            typer.echo(visible(name))
        _tell_version_table(database)
        if dry_run:
            return
        if not yes:
            question = tr(_DROP_ONE if len(names) == 1 else _DROP_ALL, names=len(names))
            typer.confirm(question, abort=True, err=True)
        database.uninstall()
        say("db_dedup is no longer in this database")


def _tell_version_table(database: Database) -> None:
    """Report what our version table is: a host application's Alembic has a table of nearly the same name."""
    version = version_table(database.namespace)
    say(
        "{table} is db-dedup's own and holds the revision of its tables: "
        "the alembic_version of another program is another table, which is never touched",
        table=version.fullname,
    )
