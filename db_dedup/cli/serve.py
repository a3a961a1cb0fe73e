"""`db-dedup serve`: checks, pairs, groups and labels over HTTP."""

from pathlib import Path
from typing import Annotated

import typer

from db_dedup.app.tokens import TOKENS_VARIABLE, add_token, new_token
from db_dedup.cli.shared.interrupts import stop_event
from db_dedup.cli.shared.options import DEFAULT_CONFIG, Config, StoreUrl, Url, load_settings, open_database
from db_dedup.cli.shared.serving import (
    SERVER,
    Host,
    Port,
    ReadOnly,
    TokensFile,
    chosen_server,
    log_requests,
    require_web,
    tell_address,
)
from db_dedup.cli.shared.terminal import say
from db_dedup.config import ServerSettings, Settings
from db_dedup.extras import load


def serve(
    config: Config = DEFAULT_CONFIG,
    url: Url = None,
    store_url: StoreUrl = None,
    host: Host = None,
    port: Port = None,
    tokens: TokensFile = None,
    read_only: ReadOnly = False,
    create: Annotated[
        str | None,
        typer.Option(
            "--new-token",
            envvar="DB_DEDUP_NEW_TOKEN",
            metavar="SCOPES",
            help="Print a new token once, store its digest, and end. Scopes: read, check, label.",
            show_default=False,
        ),
    ] = None,
    client: Annotated[
        str,
        typer.Option(
            "--client", envvar="DB_DEDUP_CLIENT", help="With --new-token: the name of the client in the log."
        ),
    ] = "client",
) -> None:
    """Serve checks, pairs, groups and labels over HTTP, until stopped.

    For other programs there is an API, for people a review console in the browser.
    """
    settings = load_settings(config, url)
    server = chosen_server((settings or Settings()).server, host, port, tokens, read_only)
    if create is not None:
        _create_token(server, create, client)
        return
    require_web()
    log_requests()
    with stop_event() as stop, open_database(config, url, store_url) as database:
        load(SERVER, "web").serve(database, settings, server, stop, tell_address)
    say("stopped")


def _create_token(server: ServerSettings, scopes: str, client: str) -> None:
    token, line = new_token([scope.strip() for scope in scopes.split(",")], client)
    if server.tokens is not None:
        add_token(Path(server.tokens), line)
        say("its digest is in {file}; the token is shown only this once", file=server.tokens)
    else:
        say("the line of the token's digest is {line}", line=line)
        say(
            "set {variable} to it, or put it into the file that tokens in [server] names; "
            "the token is shown only this once",
            variable=TOKENS_VARIABLE,
        )
    typer.echo(token)
