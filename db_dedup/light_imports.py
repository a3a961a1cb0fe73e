"""Keep libraries from importing what none of our processes uses."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


def leave_out_blas() -> None:
    """Prevent numba from importing scipy.linalg (saves a third of a second).

    Only for processes of our own: nothing else in the process can import scipy.linalg until `allow_blas`.
    """
    _hide("scipy.linalg")


def allow_blas() -> None:
    """Let scipy.linalg be imported again: a segmenter from an entry point may need it."""
    modules: dict[str, object] = dict(sys.modules)
    if modules.get("scipy.linalg", sys) is None:
        del sys.modules["scipy.linalg"]


@contextmanager
def without_pkg_resources() -> Iterator[None]:
    """Have jieba open its files as plain files: pkg_resources takes a quarter of a second to import."""
    is_hidden = "jieba" not in sys.modules and _hide("pkg_resources")
    try:
        yield
    finally:
        if is_hidden:
            del sys.modules["pkg_resources"]


def _hide(name: str) -> bool:
    """Let the import of a module fail, unless it is imported already; return whether that was done."""
    if name in sys.modules:
        return False
    # As documented, the import of such a module raises ModuleNotFoundError.
    sys.modules[name] = None  # type: ignore[assignment]
    return True
