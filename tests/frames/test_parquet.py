"""Parquet files: what is written again is what was read."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from db_dedup.frames.files import read_file, write_file
from db_dedup.frames.groups import RowGroups


@pytest.mark.parametrize("later", [["停水"], ["停水", "路灯"], ["停水", "路灯", "噪声"]])
def test_rows_are_those_that_were_read_if_the_file_changes_meanwhile(
    tmp_path: Path, later: list[str]
) -> None:
    """The groups are those of the rows that were read, whatever another program writes during the search."""
    path, out = tmp_path / "letters.parquet", tmp_path / "found.parquet"
    small = pa.array([1, 2], pa.int8())
    parquet.write_table(pa.table({"body": ["路灯", "噪声"], "small": small}), path)
    sheet = read_file(path)
    parquet.write_table(pa.table({"body": later, "small": range(len(later))}), path)
    write_file(out, sheet, RowGroups.of_members(2, [[0, 1]]))
    found = parquet.read_table(out)
    assert found.column("body").to_pylist() == ["路灯", "噪声"]
    assert found.column("small").type == pa.int8()
    assert found.column("duplicate_group").to_pylist() == [1, 1]
