"""Features that do not fit into memory: what is prefetched, and what the system is told of the file."""

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray

from db_dedup.flow.compare.kernels import RowArrays
from db_dedup.flow.features.counting import Features
from db_dedup.flow.matching import match, paging
from db_dedup.flow.matching._pairs import read_features
from db_dedup.flow.matching.paging import expect_reads, fits_into_memory
from db_dedup.flow.matching.spool import FeatureSpool, mapped, write_array
from db_dedup.temporary_files import temporary_file
from tests.engines.reference import MatchRule, brute_force, pairs_of, random_rows, table_of


@pytest.fixture
def values() -> Iterator[NDArray[np.uint64]]:
    with temporary_file() as file:
        write_array(file, np.arange(1 << 12, dtype=np.uint64))
        yield mapped(file, np.uint64)


MAP_TOO_MUCH = """
import resource
import numpy as np
from db_dedup.flow.matching.spool import mapped
from db_dedup.temporary_files import temporary_file
file = temporary_file()
file.truncate(2**34)
resource.setrlimit(resource.RLIMIT_AS, (2**33, resource.getrlimit(resource.RLIMIT_AS)[1]))
try:
    mapped(file, np.uint8)
except MemoryError:
    print("not enough memory")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits what a process may map")
def test_a_file_larger_than_a_process_may_map_is_no_fault_of_the_file() -> None:
    assert subprocess.check_output([sys.executable, "-c", MAP_TOO_MUCH], text=True) == "not enough memory\n"


def test_features_that_take_half_of_the_memory_do_not_fit(
    values: NDArray[np.uint64], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fits_into_memory(values)
    monkeypatch.setattr(paging, "_memory_bytes", lambda: 2 * values.nbytes)
    assert fits_into_memory(values)
    monkeypatch.setattr(paging, "_memory_bytes", lambda: 2 * values.nbytes - 1)
    assert not fits_into_memory(values)
    assert fits_into_memory(values.copy()), "it is in memory"


def test_the_machine_has_memory() -> None:
    assert 2**26 < paging._memory_bytes() <= 2**62


@pytest.mark.parametrize("measure", ["word_jaccard", "overlap"])
def test_the_answer_is_the_same_where_features_do_not_fit(
    measure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []

    def prefetch(numbers: NDArray[np.int32], rows: RowArrays) -> None:
        read.append(numbers.size)
        paging.prefetch(numbers, rows)

    monkeypatch.setattr(match, "fits_into_memory", lambda _: False)
    monkeypatch.setattr(match, "prefetch", prefetch)
    monkeypatch.setattr(match, "PAIRS_AT_A_TIME", 7)
    rows = random_rows(Random(1), 200)
    table, rule = table_of(rows), MatchRule(7, measure, 0.4, 1000)
    with FeatureSpool(keep_weights=False) as spool:
        spool.add(table.features, table.details)
        found = rule.match(replace(table, features=spool.all_features()))
    assert pairs_of(found) == brute_force(rows, rule).pairs
    assert 0 < max(read) <= 14


def test_each_page_of_the_rows_is_read() -> None:
    """One value of each: here the values of a page are equal, and no two pages have the same bit."""
    table = table_of(random_rows(Random(2), 6))
    starts = np.array([0, 3, 3, 4, 7, 8, 10], np.int64) * 512
    hashes = np.repeat(np.uint64(1) << np.arange(10, dtype=np.uint64), 512)
    features = Features(starts, hashes, np.empty(0, np.int64))
    table = replace(table, features=features, places=np.array([0, 1, 2, 3, -1, 5]))
    rows = table.arrays(slice(None), np.empty(0, np.int64))
    last = np.uint64(1) << np.array([2, 3, 6, 9], np.uint64)  # of each row that has features, read once more
    found = read_features(0, 6, np.arange(6, dtype=np.int32), rows)
    every = np.bitwise_xor.reduce(np.uint64(1) << np.array([0, 1, 2, 3, 4, 5, 6, 8, 9], np.uint64))
    assert found == every ^ np.bitwise_xor.reduce(last)


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="only Linux tells the flags of a map")
def test_the_system_is_told_how_features_are_read(values: NDArray[np.uint64]) -> None:
    assert not is_read_here_and_there(values)
    expect_reads(values, in_order=False)
    assert is_read_here_and_there(values)
    expect_reads(values, in_order=True)
    assert not is_read_here_and_there(values)
    assert values.tolist() == list(range(1 << 12))
    expect_reads(np.zeros(3, np.uint64), in_order=False)  # it is not mapped


def is_read_here_and_there(values: NDArray[np.uint64]) -> bool:
    """Whether the kernel of the system has been told so of the memory that an array begins in."""
    flags = ""
    for line in Path("/proc/self/smaps").read_text().splitlines():
        bounds = re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line)
        if bounds:
            is_own = int(bounds[1], 16) <= values.ctypes.data < int(bounds[2], 16)
        elif line.startswith("VmFlags:") and is_own:
            flags = line
    return " rr " in f"{flags} "
