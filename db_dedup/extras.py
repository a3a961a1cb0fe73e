"""Libraries that an extra brings, imported when they are needed."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from db_dedup.errors import MissingExtraError


def load(module: str, extra: str) -> Any:
    """Import a module.

    Raises:
        MissingExtraError: It is not installed; the message names the extra.
    """
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtraError(module.partition(".")[0], extra) from None


def require(module: str, extra: str) -> None:
    """Check that a module is installed, without the time that importing it takes.

    Raises:
        MissingExtraError: It is not installed; the message names the extra.
    """
    if find_spec(module) is None:
        raise MissingExtraError(module, extra)
