"""Compiled kernels for another installation of the same files, which need not compile them again."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import db_dedup


def copy_kernels(target: Path) -> None:
    """Copy the compiled kernels of this installation beside the same files of another one.

    numba takes them if the source has the same size and the same time of change.
    """
    source = Path(db_dedup.__file__).parent
    for file in source.rglob("*.py"):
        own = target / file.relative_to(source)
        assert own.read_bytes() == file.read_bytes(), own
        times = file.stat()
        os.utime(own, ns=(times.st_atime_ns, times.st_mtime_ns))
    for kernel in source.rglob("*.nb[ci]"):
        own = target / kernel.relative_to(source)
        own.parent.mkdir(exist_ok=True)
        shutil.copy2(kernel, own)


if __name__ == "__main__":
    copy_kernels(Path(sys.argv[1]))
