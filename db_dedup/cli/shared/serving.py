"""What `serve` and `run` share of the HTTP service."""

from typing import Final

from db_dedup.extras import require

SERVER: Final = "db_dedup.web.server"
"""Found by its name: the service and the command line do not know each other."""

_NEEDED: Final = ("fastapi", "jinja2", "uvicorn")


def require_web() -> None:
    """Check that the extra `web` is installed.

    Raises:
        MissingExtraError: it is not.
    """
    for module in _NEEDED:
        require(module, "web")
