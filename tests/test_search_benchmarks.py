"""The benchmarks of the search for candidates run."""

import pytest

from benchmarks import long_keys, long_runs


def test_long_runs_tell_what_both_ways_take(capsys: pytest.CaptureFixture[str]) -> None:
    long_runs.run(None, long_runs.SMALL)
    sizes = [int(line.split()[0]) for line in capsys.readouterr().out.splitlines()[2:]]
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) == 5


def test_long_keys_find_what_blocks_find(capsys: pytest.CaptureFixture[str]) -> None:
    long_keys.run(None, long_keys.SMALL)
    assert [line.split()[-1] for line in capsys.readouterr().out.splitlines()[2:]] == ["1,000"] * 3
