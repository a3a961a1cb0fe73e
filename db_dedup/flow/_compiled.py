"""How the kernels of the flow are compiled: by numba, when they are first called, into files that stay.

Each function that is compiled takes a tenth of a second or more, most of it outside LLVM, so that a lower
level of optimisation saves little. What saves time (decision 0054): no wrapper that is not called, no second
signature of the same kernel, no step that another one repeats (`_libraries.py`), and none of numpy's
functions whose compiled form is long, such as argsort, unique and a slice assigned to a slice, nor those that
make arrays (`_new_arrays.py`).
"""

import gc
import glob
import hashlib
import pickle
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numba as nb
from numba.core import event, types
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher
from numba.core.runtime.nrt import rtsys

from db_dedup import progress
from db_dedup.flow._libraries import KernelCompiler, LinkedCompiler

_KERNEL_FOLDERS: Final = ("flow", "methods")
"""The folders that have kernels."""

_SIGNALS: Final = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM") if hasattr(signal, name)
)
"""The signals whose handlers usually raise an exception."""

_OPTIONS: Final[dict[str, Any]] = {
    "nogil": True,
    "error_model": "numpy",  # no checks for a division by zero: kernels never divide by what may be zero
    "no_cfunc_wrapper": True,
    "pipeline_class": KernelCompiler,
}


@lru_cache(maxsize=1)
def _digest_of_kernels() -> bytes:
    """Return a digest of the source files of all kernels.

    A compiled kernel contains those that it calls, also from other files. numba looks at its own file alone,
    so that after an upgrade it would go on with the old form of what the kernel calls.
    """
    package = Path(__file__).parent.parent
    paths = sorted(path for folder in _KERNEL_FOLDERS for path in (package / folder).rglob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).digest()


@contextmanager
def _signals_postponed() -> Iterator[None]:
    """Postpone the handlers of signals that arrive in this block to its end.

    Python calls a handler, such as that of Ctrl-C, between any two steps of the main thread. If it raised its
    exception while LLVM calls Python, ctypes would drop the exception, and the kernel would have no code: a
    call of it would crash the process.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # Python calls no handler in this thread
        return
    received: list[int] = []
    try:
        with ExitStack() as handlers:
            for number in _SIGNALS:
                if callable(handler := signal.getsignal(number)):
                    handlers.callback(signal.signal, number, handler)
                    signal.signal(number, lambda number, _: received.append(number))
            yield
    finally:
        for number in received:
            signal.raise_signal(number)


def _mark(value: object) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:12]


class _CacheFile(IndexDataCacheFile):
    """The compiled forms of one function on the disk, safe if several processes compile it at a time.

    numba numbers the files of the forms by the index, and writes the index first. So of two processes that
    begin with the same index one may leave an index that gives a form the file of another form, or of an
    older source.
    """

    def save(self, key: Any, data: Any) -> None:
        """Write a compiled form into a file of its own, then the index.

        Best effort: what cannot be written, such as on a full disk, is compiled again by the next process.
        """
        with suppress(OSError):
            self._save(key, data)

    def _save(self, key: Any, data: Any) -> None:
        sources, form = _mark((self._source_stamp, self._version)), _mark(key)
        if not self._load_index():
            self._delete_former(sources)
        name = f"{self._index_name.removesuffix('.nbi')}.{sources}.{form}.nbc"
        self._save_data(name, data)
        self._save_index({**self._load_index(), key: name})

    def _delete_former(self, sources: str) -> None:
        """Delete the function's files of other sources, which nothing else would delete after an upgrade."""
        function, _, line_and_python = self._index_name.rpartition("-")
        python = line_and_python.removesuffix(".nbi").partition(".")[2]
        for path in Path(self._cache_path).glob(f"{glob.escape(function)}-*.{python}*.nb[ci]"):
            if path.name != self._index_name and f".{sources}." not in path.name:
                with suppress(OSError):  # on Windows a file that a process reads cannot be deleted
                    path.unlink()

    def _load_index(self) -> dict[Any, str]:
        try:
            found: dict[Any, str] = super()._load_index()
        except (AttributeError, EOFError, ImportError, PermissionError, pickle.UnpicklingError):
            return {}  # of another release, whose classes are elsewhere, or cut short, or of another account
        return found


class _Cache(FunctionCache):
    """Loads compiled forms from the disk without what only a compilation needs.

    numba's own cache first imports and registers all that numba can compile, which takes longer than the rest
    of a `check`. The compiler does the same before it compiles something.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled form for these types of arguments, or None."""
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


class _Dispatcher(CPUDispatcher):
    """Compiles one form of a function for a constant and a variable, and is not interrupted by signals.

    numba compiles a function once more for each constant that it is called with from another kernel.
    """

    def compile(self, sig: Any) -> Any:
        """Load or compile the form for these types of arguments."""
        with _signals_postponed():
            return super().compile(sig)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Return how a kernel calls this function, with the types of the constants as those of variables."""
        plain = {name: types.unliteral(given) for name, given in kws.items()}
        return super().get_call_template(tuple(map(types.unliteral, args)), plain)


def _decorator(**options: Any) -> Any:
    compile_when_called: Any = nb.njit  # its types leave out some of the options

    def decorate(function: Any) -> Any:
        compiled = compile_when_called(**{**_OPTIONS, **options})(function)
        compiled.__class__ = _Dispatcher
        return compiled

    return decorate


def _kept(decorate: Any) -> Any:
    """Return a decorator whose functions are also kept on the disk, for later processes."""

    def decorate_and_keep(function: Any) -> Any:
        compiled = decorate(function)
        with suppress(RuntimeError):  # numba finds no folder that this account can write: nothing is kept
            compiled.enable_caching()
            cache = compiled._cache
            cache.__class__ = _Cache
            cache._cache_file.__class__ = _CacheFile
            cache._cache_file._source_stamp = cache._cache_file._source_stamp, _digest_of_kernels()
        return compiled

    return decorate_and_keep


_LINKED: Final[dict[str, Any]] = {"no_cpython_wrapper": True, "pipeline_class": LinkedCompiler}

kernel: Final[Any] = _kept(_decorator())
"""Decorates what Python calls."""

addressed: Final[Any] = _kept(_decorator(no_cpython_wrapper=True))
"""Decorates what kernels call by its address. Without the wrapper a call from Python ends the process."""

inner: Final[Any] = _decorator(**_LINKED, _nrt=False)
"""Decorates what is compiled into the kernels that call it, and makes no array. A call from Python ends the
process.

Such a function does not count the references to the arrays that it is given. Else numba counts those of each
array of a tuple by atomic operations, which took most of the time of kernels that read character after
character or compare pair after pair.
"""

allocating: Final[Any] = _decorator(**_LINKED)
"""Decorates an `inner` function that makes an array or returns one."""


def is_on_disk(function: Any, arguments: tuple[Any, ...]) -> bool:
    """Return whether a kernel was compiled for these types of arguments by this or an earlier process."""
    if arguments in function.overloads:
        return True
    # numba has no public way to ask, and an index of an older version of the file must not count.
    with global_compiler_lock, _signals_postponed():
        return function._cache.load_overload(arguments, function.targetctx) is not None


def is_kept(function: Any) -> bool:
    """Return whether there is a folder for what is compiled of a kernel, where later processes find it."""
    return isinstance(function._cache, FunctionCache)


class _Report(event.Listener):
    """Reports the first compilation of this process, and has Python collect no garbage meanwhile.

    A compilation makes very many objects, most of which stay. To look for garbage among them takes a tenth of
    the time.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._collects = False

    def on_start(self, compilation: Any) -> None:
        """Report that numba begins to compile; it does not when it finds a compiled kernel on the disk."""
        self._depth += 1
        if self._depth == 1:
            self._collects = gc.isenabled()
            gc.disable()
            progress.report_compiling(is_kept(compilation.data["dispatcher"]))

    def on_end(self, _: object) -> None:
        """Collect garbage again after the outermost of the compilations that call one another."""
        self._depth -= 1
        if self._depth == 0 and self._collects:
            if not gc.get_freeze_count():  # else it would end what another part of the process has begun
                gc.freeze()
                gc.unfreeze()  # all objects are old now, which takes no time, and are not searched at once
            gc.enable()


event.register("numba:compile", _Report())
