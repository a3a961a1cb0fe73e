"""What keeps the first use after installing short, and what is said about it."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from db_dedup.flow._compiled import _KERNEL_FOLDERS

ROOT = Path(__file__).parent.parent.parent
FILES = sorted(path for room in ("db_dedup", "tests", "benchmarks") for path in (ROOT / room).rglob("*.py"))
SLOW_TO_COMPILE = {
    "argsort", "concatenate", "cumsum", "diff", "empty", "full", "repeat", "sort", "unique", "zeros"
}  # fmt: skip
"""Functions of numpy whose compiled form takes a second or more, and those that `_new_arrays.py` replaces."""

KERNELS = {"addressed", "allocating", "inner", "kernel"}
"""The decorators of what numba compiles."""

MAY_BE_SLOW = {"index_hashes"}
"""A kernel that hardly any table needs."""

MIXED = """
from db_dedup.flow._mix import mix
from db_dedup.progress import when_compiling
when_compiling(lambda is_kept: print("compiling" if is_kept else "compiling, not kept"))
mix(1)
mix(True)
"""


def decorators(node: ast.AST) -> set[str]:
    return {ast.unparse(d) for d in node.decorator_list} if isinstance(node, ast.FunctionDef) else set()


def outside_kernels(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a module that Python runs."""
    for child in ast.iter_child_nodes(node):
        if not decorators(child) & KERNELS:
            yield child
            yield from outside_kernels(child)


def only_addressed(tree: ast.AST) -> set[ast.AST]:
    """The kernels of which Python takes the address or the file, without a call."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    takers = {"address_of", "callable_from_python", "is_kept", "is_on_disk"}
    return {call.args[0] for call in calls if ast.unparse(call.func) in takers}


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def test_python_calls_no_inner_kernel() -> None:
    """It has no wrapper for Python: the process would end."""
    trees = {module_of(path): ast.parse(path.read_text(encoding="utf-8")) for path in FILES}
    inner = {(m, node.name) for m, t in trees.items() for node in t.body
             if isinstance(node, ast.FunctionDef) and decorators(node) & KERNELS - {"kernel"}}  # fmt: skip
    assert len(inner) > 20
    called = set()
    for module, tree in trees.items():
        names = {name: (module, name) for m, name in inner if m == module}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                names |= {alias.asname or alias.name: (node.module or "", alias.name) for alias in node.names}
        for node in set(outside_kernels(tree)) - only_addressed(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                called.add(names.get(node.id, ("", "")))
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                called.add((".".join(names.get(node.value.id, ("", ""))), node.attr))
    assert not called & inner


def test_kernels_use_nothing_that_is_slow_to_compile() -> None:
    slow = set()
    for path in (path for folder in _KERNEL_FOLDERS for path in (ROOT / "db_dedup" / folder).rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if decorators(node) & KERNELS and isinstance(node, ast.FunctionDef):
                used = {ast.unparse(n.func) for n in ast.walk(node) if isinstance(n, ast.Call)}
                if used & {f"np.{name}" for name in SLOW_TO_COMPILE}:
                    slow.add(node.name)
    assert slow == MAY_BE_SLOW


def test_kernels_raise_fixed_texts_and_print_nothing() -> None:
    """In the process that compiles, other exceptions of a linked function fail, and `print` hangs."""
    others = []
    for path in (ROOT / "db_dedup").rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if decorators(node) & KERNELS:
                calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
                others += [path for call in calls if ast.unparse(call.func) == "print"]
                raised = [n.exc for n in ast.walk(node) if isinstance(n, ast.Raise)]
                given = [argument for exc in raised if isinstance(exc, ast.Call) for argument in exc.args]
                others += [path for argument in given if not isinstance(argument, ast.Constant)]
    assert others == []


def test_a_compilation_is_reported_once_and_a_compiled_kernel_is_not(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", MIXED]
    said = [subprocess.check_output(command, env=environment, text=True) for _ in range(2)]
    assert said == ["compiling\n", ""]


def test_without_a_folder_for_compiled_kernels_each_process_compiles() -> None:
    """As for the account of a service that may write neither to the package nor to a home."""
    environment = {**os.environ, "NUMBA_CACHE_LOCATOR_CLASSES": "ZipCacheLocator", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", MIXED]
    said = [subprocess.check_output(command, env=environment, text=True) for _ in range(2)]
    assert said == ["compiling, not kept\n"] * 2


SMALL_FILES = """
import resource
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no limit for the size of a file")
def test_a_kernel_that_cannot_be_stored_is_used(tmp_path: Path) -> None:
    """As on a full disk."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", SMALL_FILES + MIXED]
    assert subprocess.check_output(command, env=environment, text=True) == "compiling\n"
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


ONE_FORM = """
from db_dedup.flow._compiled import inner, kernel

@inner
def added(a, b):
    return a + b

@kernel
def sums(n):
    return added(n, 1) + added(1, n) + added(n, n) + added(1, 2)

assert sums(5) == 25
print(len(added.signatures))
"""


def test_a_constant_and_a_variable_have_one_compiled_form(tmp_path: Path) -> None:
    (tmp_path / "one_form.py").write_text(ONE_FORM, encoding="utf-8")
    command = [sys.executable, str(tmp_path / "one_form.py")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"


LINKED = """
import gc
import numpy as np
from db_dedup.flow._compiled import inner, kernel

@inner
def doubled(values):
    return 2 * values[0]

@kernel
def sums(values):
    return doubled(values) + doubled(values)

assert sums(np.array([3])) == 12
[compiled] = doubled.overloads.values()
address = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)
print(address, gc.isenabled(), gc.get_freeze_count())
"""


def test_an_inner_function_has_no_machine_code_and_no_file(tmp_path: Path) -> None:
    """Both take time, and only the kernel is called."""
    (tmp_path / "linked.py").write_text(LINKED, encoding="utf-8")
    command = [sys.executable, str(tmp_path / "linked.py")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "True", "0"]
    kept = {path.name.split(".")[1].split("-")[0] for path in (tmp_path / "kept").rglob("*.nb[ci]")}
    assert kept == {"sums"}


GARBAGE = """
import gc
from db_dedup.flow._mix import mix
from db_dedup.progress import when_compiling

def fail(_):
    raise OSError

when_compiling(fail)
try:
    mix(1)
except OSError:
    print(gc.isenabled())
mix(2)
print(gc.isenabled(), gc.get_freeze_count())
gc.freeze()
mix(True)
print(gc.isenabled(), gc.get_freeze_count() > 0)
"""


def test_garbage_is_collected_again_after_a_compilation(tmp_path: Path) -> None:
    """Also if the report of it fails. What the user has frozen stays frozen, and nothing else is."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", GARBAGE]
    said = subprocess.check_output(command, env=environment, text=True)
    assert said == "True\nTrue 0\nTrue True\n"


SIGNALLED = """
import os, signal
from numba.core import event
from db_dedup.flow._compiled import kernel

@kernel
def twice(n):
    return 2 * n

class Signal(event.Listener):
    def on_start(self, _):
        os.kill(os.getpid(), signal.SIGINT)

    def on_end(self, _):
        pass

try:
    with event.install_listener("numba:compile", Signal()):
        twice(5)
except KeyboardInterrupt:
    print(len(twice.signatures), twice(6))
"""


def test_a_signal_waits_until_a_kernel_is_compiled(tmp_path: Path) -> None:
    (tmp_path / "signalled.py").write_text(SIGNALLED, encoding="utf-8")
    command = [sys.executable, str(tmp_path / "signalled.py")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path)}
    # A signal that is sent again and again would keep the program from ending.
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == "1 12\n"


CALLEE = """
from db_dedup.flow._compiled import inner

@inner
def added(n):
    return n + {amount}
"""
CALLER = """
from db_dedup.flow import _compiled
_compiled._KERNEL_FOLDERS = ({folder!r},)
from callee import added

@_compiled.kernel
def twice(n):
    return added(n) * 2

print(twice(5))
"""


WITHOUT_AST = """
from numba.np.ufunc import array_exprs
from db_dedup.engines.embedded.compile_ahead import match_two_rows
from db_dedup.flow.words import word_hasher

array_exprs.ast = None
print(word_hasher("jieba", (), ())(["路灯不亮"]).size)
match_two_rows()
"""


def test_no_operation_on_whole_arrays_is_compiled(tmp_path: Path) -> None:
    """numba calls `ast.parse` for one, which fails on Python 3.11 while another thread is in it."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path)}
    assert subprocess.check_output([sys.executable, "-c", WITHOUT_AST], env=environment, text=True) == "3\n"


def test_all_kernels_are_in_the_folders_of_the_digest() -> None:
    package = ROOT / "db_dedup"
    folders = {
        path.relative_to(package).parts[0]
        for path in package.rglob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if decorators(node) & {*KERNELS, "_compiled.kernel"}
    }
    assert folders == set(_KERNEL_FOLDERS)


def test_a_kernel_is_compiled_anew_if_another_file_changes_what_it_calls(tmp_path: Path) -> None:
    """As after an upgrade, which leaves the compiled kernels of files that are the same."""
    (tmp_path / "caller.py").write_text(CALLER.format(folder=str(tmp_path)), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    said = []
    for amount in (1, 2, 2):
        (tmp_path / "callee.py").write_text(CALLEE.format(amount=amount), encoding="utf-8")
        command = [sys.executable, "-B", str(tmp_path / "caller.py")]
        said.append(subprocess.check_output(command, env=environment, text=True).strip())
    assert said == ["12", "14", "14"]


def test_compiled_forms_of_former_sources_are_deleted(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(cache)}
    names = []
    for comment in ("", "\n# The function is on another line then.\n"):
        source = comment + CALLER.format(folder=str(tmp_path))
        (tmp_path / "caller.py").write_text(source, encoding="utf-8")
        (tmp_path / "callee.py").write_text(CALLEE.format(amount=len(comment)), encoding="utf-8")
        subprocess.check_call([sys.executable, "-B", str(tmp_path / "caller.py")], env=environment)
        names.append({path.name for path in cache.rglob("*.nb?") if path.name.startswith("caller.")})
    assert len(names[0]) == len(names[1]) == 2
    assert not names[0] & names[1]
