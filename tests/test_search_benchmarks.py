"""The benchmarks of the search for candidates run."""

import re
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from random import Random

import numpy as np
import pytest

from benchmarks import generators, long_keys, long_runs, other_engines


def test_long_runs_tell_what_both_ways_take(capsys: pytest.CaptureFixture[str]) -> None:
    long_runs.run(None, long_runs.SMALL)
    sizes = [int(line.split()[0]) for line in capsys.readouterr().out.splitlines()[2:]]
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) == 5


def test_long_keys_find_what_blocks_find(capsys: pytest.CaptureFixture[str]) -> None:
    long_keys.run(None, long_keys.SMALL)
    assert [line.split()[-1] for line in capsys.readouterr().out.splitlines()[2:]] == ["1,000"] * 3


def test_generators_find_what_is_quoted(capsys: pytest.CaptureFixture[str]) -> None:
    generators.run(None, generators.Sizes(texts=20, rows=100, runs=1), ("SQLite",))
    printed = capsys.readouterr().out
    quoting = re.findall(r"^quotes it .* long +([\d. ]+)$", printed, re.MULTILINE)
    assert len(quoting) == len(generators.LONGER)
    assert {tuple(line.split()[2::2]) for line in quoting} == {("1.000", "1.000")}, "passages, any"
    costs = dict(re.findall(r"^SQLite +(with\w*) +[\d.]+ +([\d.]+) ", printed, re.MULTILINE))
    assert float(costs["with"]) > 20
    assert float(costs["without"]) == 0


def test_short_texts_have_no_bands() -> None:
    """Only hashes that the sketches have count, and of passage hashes one in twelve must be common."""
    text = "本人反映五号楼前的路灯坏了三个月没有人来修理请尽快处理"
    phrase = "请有关部门在规定的时间内给予书面答复并依法追究责任"
    chance = Random(1)
    one, other = ("".join(chr(chance.randrange(0x4E00, 0x9000)) for _ in range(600)) for _ in range(2))
    found = generators.proposed([text, one + phrase], [text, phrase + other])
    assert {name: pairs.tolist() for name, pairs in found.items()} == {
        "simhash": [True, False],
        "minhash bands": [False, False],
        "passage hashes": [False, False],
        "grams of short texts": [True, False],
        "any": [True, False],
    }


def test_engines_count_the_pairs_that_share_enough_hashes(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    hashes, rows = rng.integers(-40, 40, 300), rng.integers(0, 30, 300)
    entries = sorted({*zip(hashes.tolist(), rows.tolist(), strict=True)})
    of_row = [{own for own, other in entries if other == row} for row in range(30)]
    expected = sum(len(one & other) >= other_engines.LEAST for one, other in combinations(of_row, 2))
    assert expected > 0
    file = tmp_path / "entries.parquet"
    other_engines.write_entries(file, *np.array(entries).T)
    engines = {name: other_engines.ENGINES[name] for name in ("one process", "DuckDB")}
    assert {e.count(str(file)) for e in engines.values() if find_spec(e.module)} == {expected}


@pytest.mark.usefixtures("pyspark")
def test_spark_counts_the_pairs_that_one_process_counts(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    engines = {name: other_engines.ENGINES[name] for name in ("one process", "Spark")}
    monkeypatch.setattr(other_engines, "ENGINES", engines)
    other_engines.run(None, other_engines.SMALL)
    one, spark = (line.split()[-1] for line in capsys.readouterr().out.splitlines()[2:])
    assert one == spark
    assert int(one) > 0
