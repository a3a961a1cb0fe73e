"""What `serve` and `run` share of the HTTP service."""

import logging
from typing import Final

from db_dedup.cli.shared.terminal import say
from db_dedup.extras import require

SERVER: Final = "db_dedup.web.server"
"""Found by its name: the service and the command line do not know each other."""

_LOGGER: Final = "db_dedup.web"
_NEEDED: Final = ("fastapi", "jinja2", "uvicorn")


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
