"""Labels from a CSV file: what is taken, what is passed over, and what is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from db_dedup.errors import ConfigError
from db_dedup.jobs.review.label_file import NO, YES, read_labels


def written(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "labels.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("label", [*YES, *(word.upper() for word in NO), " Yes "])
def test_a_label_says_yes_or_no(tmp_path: Path, label: str) -> None:
    (found,) = read_labels(written(tmp_path, f"key_a,key_b,label\n1,2,{label}\n"))
    assert (found.key_a, found.key_b) == ("1", "2")
    assert found.is_duplicate is (label.strip().casefold() in YES)


def test_labels_may_be_chinese(tmp_path: Path) -> None:
    lines = ("1,2,是", "1,3,否", "1,4,重复", "1,5,不重复", "1,6,不确定")
    found = read_labels(written(tmp_path, "\n".join(("key_a,key_b,label", *lines))))
    assert [label.is_duplicate for label in found] == [True, False, True, False]


def test_columns_are_found_by_name(tmp_path: Path) -> None:
    text = '\ufefflabel,who,id_b,id_a\r\nno,me,"a,b",[1]\r\n\r\n?,me,3,4\r\n'
    (found,) = read_labels(written(tmp_path, text))
    assert (found.key_a, found.key_b, found.is_duplicate) == ("[1]", "a,b", False)


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_the_separator_is_detected(tmp_path: Path, separator: str) -> None:
    lines = (("key_a", "key_b", "label"), ('"[1,2]"', "3", "1"))
    (found,) = read_labels(written(tmp_path, "\n".join(map(separator.join, lines))))
    assert (found.key_a, found.key_b, found.is_duplicate) == ("[1,2]", "3", True)


def test_other_labels_are_named_by_the_caller(tmp_path: Path) -> None:
    path = written(tmp_path, "key_a,key_b,label\n1,2,V\n1,3,S\n1,4,\n")
    assert [label.is_duplicate for label in read_labels(path, ["v"])] == [True, False]
    with pytest.raises(ConfigError, match="line 3: label 'S' is none of yes"):
        read_labels(path)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("key_a,label\n1,yes\n", "needs the columns key_a, key_b and label"),
        ("", "needs the columns"),
        ("key_a,key_b,label\n1,2\n", "line 2: it has 2 columns, the header 3"),
        (b"key_a,key_b,label\n\xff,2,yes\n", "is not UTF-8"),
    ],
)
def test_faults_are_told(tmp_path: Path, text: str | bytes, fault: str) -> None:
    with pytest.raises(ConfigError, match=fault):
        read_labels(written(tmp_path, text))


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read"):
        read_labels(tmp_path / "none.csv")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('key_a,key_b,label,note\n1,2,yes,\n3,4,no,"broken\n5,6,yes,\n7,8,yes,\n', 3),
        ('key_a,key_b,label,note\n1,2,yes,"two\nlines"\n3,4,no,"broken\n5,6,yes,"fine"\n7,8,yes,\n', 4),
    ],
)
def test_no_label_is_lost_to_a_quotation_mark(tmp_path: Path, text: str, line: int) -> None:
    """It would take the lines that follow for a part of the note."""
    with pytest.raises(ConfigError, match=f"line {line}: .+ double the mark"):
        read_labels(written(tmp_path, text))


def test_the_line_of_a_fault_is_where_its_record_begins(tmp_path: Path) -> None:
    path = written(tmp_path, 'key_a,key_b,label,note\n1,2,yes,"two\nlines"\n3,4,maybe,"two\nlines"\n')
    with pytest.raises(ConfigError, match="line 4: label 'maybe'"):
        read_labels(path)
