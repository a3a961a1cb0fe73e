"""The benchmarks of the search for candidates run."""

import re
from random import Random

import pytest

from benchmarks import generators, long_keys, long_runs


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
