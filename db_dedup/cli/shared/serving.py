"""What `serve` and `run` share of the HTTP service."""

import logging
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from db_dedup.cli.shared.terminal import say
from db_dedup.config import ServerSettings
from db_dedup.extras import require

SERVER: Final = "db_dedup.web.server"
"""Found by its name: the service and the command line do not know each other."""

_LOGGER: Final = "db_dedup.web"
_NEEDED: Final = ("fastapi", "jinja2", "uvicorn")

Host = Annotated[
    str | None,
    typer.Option(envvar="DB_DEDUP_SERVER_HOST", help="The address to listen on.", show_default="127.0.0.1"),
]
Port = Annotated[
    int | None,
    typer.Option(
        envvar="DB_DEDUP_SERVER_PORT",
        min=0,
        max=65535,
        help="The port; 0 takes a free one.",
        show_default="8765",
    ),
]
TokensFile = Annotated[
    Path | None,
    typer.Option(
        envvar="DB_DEDUP_SERVER_TOKENS",
        help="The file of the digests of the clients' tokens.",
        dir_okay=False,
        show_default=False,
    ),
]
ReadOnly = Annotated[
    bool,
    typer.Option("--read-only", envvar="DB_DEDUP_SERVER_READ_ONLY", help="Refuse labels and reservations."),
]


def chosen_server(
    settings: ServerSettings, host: str | None, port: int | None, tokens: Path | None, read_only: bool
) -> ServerSettings:
    """Return the settings of the file with the options that were given, or their variables."""
    chosen: dict[str, Any] = {"host": host, "port": port, "tokens": None if tokens is None else str(tokens)}
    chosen["read_only"] = read_only or None
    return settings.model_copy(update={name: value for name, value in chosen.items() if value is not None})


def require_web() -> None:
    """Check that the extra `web` is installed.

    Raises:
        MissingExtraError: it is not.
    """
    for module in _NEEDED:
        require(module, "web")


def log_requests() -> None:
    """Log a line for each request on stderr, and of everything else what is wrong."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s")
    logging.getLogger(_LOGGER).setLevel(logging.INFO)


def tell_address(address: str) -> None:
    """Say where the service is."""
    say("serving; review console: {address}/console, documentation: {address}/v1/docs", address=address)
