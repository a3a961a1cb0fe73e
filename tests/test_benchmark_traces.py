"""What benchmarks leave behind: in the folder of the documentation and in the environment."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import growth, large, start


def test_figures_of_the_small_size_are_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in (growth, large):
        monkeypatch.setattr(module, "FOLDER", tmp_path)
    growth.run(None, growth.SMALL, ("SQLite",))
    large.run(None, replace(large.SMALL, rows=300, later=0), ("SQLite",))
    assert "first scan" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_a_start_with_nothing_compiled_leaves_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Mapping[str, str]] = []
    monkeypatch.setattr(start, "_run", lambda *arguments: given.append(arguments[3]))
    before = dict(os.environ)
    start.run(None, start.Sizes(runs=1, cold=1))
    assert dict(os.environ) == before
    assert [*given[0]] == ["NUMBA_CACHE_DIR"]
    assert all(kernels == given[0] for kernels in given)
