"""A scan counts the cores and the memory that it is given, not those of the machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from db_dedup.flow import control_groups
from db_dedup.flow.matching import paging
from db_dedup.flow.usable_cores import usable_cores


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of 64 cores and 64 GB; the folder of its control groups."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(64), raising=False)
    monkeypatch.setattr(os, "sysconf", {"SC_PHYS_PAGES": 1 << 24, "SC_PAGE_SIZE": 1 << 12}.__getitem__)
    monkeypatch.setattr(control_groups, "_GROUPS", tmp_path)
    monkeypatch.setattr(control_groups, "_GROUPS_OF_THIS_PROCESS", tmp_path / "own")
    return tmp_path


def put(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text + "\n")


def test_a_system_without_groups(groups: Path) -> None:
    assert not (groups / "own").exists()
    assert usable_cores() == 64
    assert paging._memory_bytes() == 1 << 36


@pytest.mark.parametrize(
    ("quota", "cores"),
    [("max 100000", 64), ("100000 100000", 1), ("150000 100000", 2), ("5000 100000", 1), ("odd", 64)],
)
def test_a_container_with_the_time_of_some_cores(groups: Path, quota: str, cores: int) -> None:
    put(groups, own="0::/", cpu__max=quota)
    assert usable_cores() == cores


def test_a_service_in_a_group_of_its_own(groups: Path) -> None:
    put(groups, own="0::/system.slice/scan.service")
    put(groups / "system.slice", cpu__max="300000 100000")
    put(groups / "system.slice" / "scan.service", cpu__max="max 100000")
    assert usable_cores() == 3


@pytest.mark.parametrize(("quota", "cores"), [("-1", 64), ("200000", 2)])
def test_the_former_groups(groups: Path, quota: str, cores: int) -> None:
    put(groups, own="7:memory:/a\n4:cpu,cpuacct:/docker/unseen:name\n0::/")
    put(groups / "cpu", cpu__cfs_quota_us=quota, cpu__cfs_period_us="100000")
    assert usable_cores() == cores


@pytest.mark.parametrize(("limit", "memory"), [("max", 1 << 36), (str(1 << 32), 1 << 32), ("odd", 1 << 36)])
def test_a_container_with_some_memory(groups: Path, limit: str, memory: int) -> None:
    put(groups, own="0::/scan.service", memory__max=limit)
    put(groups / "scan.service", memory__max="max")
    assert paging._memory_bytes() == memory


@pytest.mark.parametrize(("limit", "memory"), [("9223372036854771712", 1 << 36), (str(1 << 32), 1 << 32)])
def test_the_memory_of_the_former_groups(groups: Path, limit: str, memory: int) -> None:
    put(groups, own="7:memory:/docker/unseen:name\n4:cpu,cpuacct:/a\n0::/")
    put(groups / "memory", memory__limit_in_bytes=limit)
    assert paging._memory_bytes() == memory
