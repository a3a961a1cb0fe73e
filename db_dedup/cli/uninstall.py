"""`db-dedup uninstall`: everything of ours out of the user's database."""

from typing import Annotated

import typer

from db_dedup.app import Database
from db_dedup.cli.options import DEFAULT_CONFIG, Config, StoreUrl, Url, open_database
from db_dedup.cli.terminal import say, visible
from db_dedup.schema.home import version_table


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
            what = "this table" if len(names) == 1 else f"these {len(names):,} tables, views and triggers"
            question = f"Drop {what}? The answer is lost, no row of yours is."
            typer.confirm(question, abort=True, err=True)
        database.uninstall()
        say("db_dedup is no longer in this database")


def _tell_version_table(database: Database) -> None:
    """Say whose it is: a host application's Alembic has a table of nearly the same name."""
    version = version_table(database.namespace)
    say(
        f"{version.fullname} is db-dedup's own and holds the revision of its tables: "
        "the alembic_version of another program is another table, which is never touched"
    )
