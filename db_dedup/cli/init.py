"""`db-dedup init`: look at a database, write a sensible settings file."""

from contextlib import closing
from typing import Annotated

import typer
from sqlalchemy import URL, make_url
from tomlkit import comment, document, dumps, inline_table, nl, table
from tomlkit.items import Table
from tomlkit.toml_document import TOMLDocument

from db_dedup.app import Database
from db_dedup.app.proposals import Proposals, propose_settings
from db_dedup.cli.shared.options import DEFAULT_CONFIG, Config, Force, Url
from db_dedup.cli.shared.output import data_output
from db_dedup.cli.shared.terminal import say
from db_dedup.config import DEFAULT_PRESET, database_url
from db_dedup.errors import ConfigError
from db_dedup.proposal import TableProposal
from db_dedup.replaced_file import replaced
from db_dedup.translation import joined, tr


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
    force: Force = False,
) -> None:
    """Inspect a database and write a settings file: key, order column and the columns of texts."""
    if config.exists() and not force and not dry_run:
        raise ConfigError(
            "{config} is there already: --force replaces it, --dry-run only prints", config=config
        )
    full_url = database_url(url, None)
    with closing(Database(full_url)) as database:
        proposals = propose_settings(database, tables or ())
    for name, reason in proposals.left_out:
        say("left out {name}: {reason}", name=name, reason=reason)
    if not proposals.tables:
        raise ConfigError("no table with a key and a column of texts was found: write the settings by hand")
    for proposal in proposals.tables:
        for risk in proposal.risks:
            say("warning: {table}: {risk}", table=proposal.table, risk=risk)
    text = dumps(settings_document(full_url, proposals))
    if dry_run:
        data_output().write(text)
        return
    with replaced(config) as unfinished:
        unfinished.write_text(text, encoding="utf-8")
    names = joined(", ", (proposal.table for proposal in proposals.tables))
    say("wrote {config} for {names}: read it, then run `db-dedup upgrade`", config=config, names=names)


def settings_document(url: str, proposals: Proposals) -> TOMLDocument:
    """Write proposed settings as TOML, with the reason of each choice; a password is left out."""
    parsed = make_url(url)
    without_password = _without_password(parsed)
    doc = document()
    database = table()
    if without_password == parsed:
        database.add("url", url)  # as it was given: SQLAlchemy would write the path of a file with escapes
    else:
        database.add(comment(tr("The password is not kept here: set DB_DEDUP_URL to the whole URL.")))
        database.add("url", without_password.render_as_string(hide_password=False))
    doc.add("database", database)
    for name, reason in proposals.left_out:
        doc.add(comment(_on_one_line(tr("left out {name}: {reason}", name=name, reason=reason))))
    watched = table(is_super_table=True)
    for proposal in proposals.tables:
        watched.add(proposal.table, _table_section(proposal))
    doc.add("tables", watched)
    return doc


def _without_password(url: URL) -> URL:
    """Return the URL without passwords.

    Drivers take them from the query as well: that of the user, and that of the key of a certificate.
    """
    url = url.difference_update_query([name for name in url.query if "passw" in name.casefold()])
    return URL.create(url.drivername, url.username, None, url.host, url.port, url.database, url.query)


def _table_section(proposal: TableProposal) -> Table:
    section = table()
    key = proposal.key
    section.add("key", key[0] if len(key) == 1 else list(key))
    if proposal.order:
        section.add("order", proposal.order)
    section.add("preset", DEFAULT_PRESET)
    section.add(nl())
    columns = table()
    for column in proposal.columns:
        if column.is_chosen:
            spec = inline_table()
            spec.append("kind", "text")
            spec.append("weight", 1)
            spec.comment(_on_one_line(tr(column.reason)))
            columns.add(column.name, spec)
    left_out = [column for column in proposal.columns if not column.is_chosen]
    if left_out:
        columns.add(comment(tr("Left out; add what tells whether two rows are the same matter:")))
    for column in left_out:
        columns.add(comment(_on_one_line(f"  {column.name}: {tr(column.reason)}")))
    for risk in proposal.risks:
        columns.add(comment(_on_one_line(tr("Warning: {risk}.", risk=risk))))
    section.add("columns", columns)
    return section


def _on_one_line(text: str) -> str:
    """Return a comment on one line: a name of the user's may have a line break, which would end it."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
