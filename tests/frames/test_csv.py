"""CSV files as spreadsheets of several countries write them."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from db_dedup.encodings import detect_encoding
from db_dedup.errors import ConfigError
from db_dedup.frames.csv_file import read_csv, write_csv
from db_dedup.frames.sheet import Sheet, sheet_of, unique_names
from db_dedup.frames.sheet_duplicates import find_in_sheet, propose_columns
from db_dedup.sample import generate_petitions

LETTERS = [
    # GBK has no sign for a space that does not break.
    (petition.title.replace("\xa0", " "), petition.content.replace("\xa0", " "))
    for petition in generate_petitions(60).petitions
]
FRENCH = "id,texte\n" + '1,"Le café est fermé depuis l’été, où aller ? Ça coûte 20 €."\n' * 20


def csv_of(letters: list[tuple[str, str]], separator: str = ",") -> str:
    lines = ["标题" + separator + "内容"]
    lines += [f'"{title}"{separator}"{content}"' for title, content in letters]
    return "\r\n".join(lines) + "\r\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "gbk", "gb18030"])
@pytest.mark.parametrize("count", [1, 60])
def test_chinese_files_are_read_whatever_their_encoding(tmp_path: Path, encoding: str, count: int) -> None:
    path = tmp_path / "letters.csv"
    path.write_bytes(csv_of(LETTERS[:count]).encode(encoding))
    sheet = read_csv(path)
    assert sheet.names == ("标题", "内容")
    assert sheet.rows == LETTERS[:count]
    assert sheet.first_row == 2
    assert read_csv(path, encoding).rows == sheet.rows


def test_a_large_file_is_not_cut_inside_a_character(tmp_path: Path) -> None:
    letters = LETTERS * 60
    path = tmp_path / "letters.csv"
    path.write_bytes(csv_of(letters).encode("gb18030"))
    assert path.stat().st_size > 1_000_000
    assert read_csv(path).rows == letters


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (FRENCH, "cp1252"),
        ("id,本文\n" + "1,道路の街灯が三ヶ月も壊れたままです\n" * 5, "shift_jis"),
        ("id,본문\n" + "1,가로등이 석 달째 고장입니다\n" * 5, "euc_kr"),
        ("id,內容\n" + "1,路燈壞了三個月，沒有人來修理，請儘快處理\n" * 5, "big5"),
    ],
)
def test_other_national_encodings_are_detected(text: str, encoding: str) -> None:
    content = text.encode(encoding)
    found = detect_encoding(content)
    assert found is not None
    assert content.decode(found) == text


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_separators_are_detected(tmp_path: Path, separator: str) -> None:
    path = tmp_path / "letters.csv"
    path.write_text(csv_of(LETTERS[:9], separator), encoding="utf-8")
    assert read_csv(path).rows == LETTERS[:9]


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", r"^\S*letters\.csv is empty: its first line should name the columns$"),
        (b"\n\n", r"letters\.csv is empty: its first line"),
        (b"a,b\n1,2,3\n", "row 2 has 3 values, but the header names 2 columns: put quotation marks"),
        (b'a,b\n1,2\n1,"2\n3,4\n5,6\n', "line 3: unexpected end of data: .* double the mark"),
        (b"," * 2_000 + b"\n1\n", "has 2,001 columns, and no more than 1,998 can be read"),
        (b"\xff\xff\xff\x00\x01\xfe", "encoding"),
        (b"PK\x03\x04\x14\x00\x00\x00", "seems to be a workbook or another ZIP archive: unpack it"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "seems to be an old workbook"),
        (b"\x1f\x8b\x08\x08", "seems to be a file compressed by gzip"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, content: bytes, fault: str) -> None:
    path = tmp_path / "letters.csv"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=fault):
        read_csv(path)


def test_columns_are_selected_by_the_rows_that_have_values(tmp_path: Path) -> None:
    """A spreadsheet writes a row of separators for each row that was cleared, or has borders alone."""
    path = tmp_path / "letters.csv"
    path.write_text(csv_of(LETTERS) + ",\r\n" * 1_500 + csv_of(LETTERS), encoding="utf-8")
    sheet = read_csv(path)
    assert len(sheet.rows) == 1_500 + 2 * len(LETTERS) + 1
    assert [column.name for column in propose_columns(sheet) if column.is_chosen] == ["标题", "内容"]


def test_as_many_columns_as_can_be_read_are_compared() -> None:
    names = ("body", "date", *map(str, range(1_996)))
    rows = [
        (f"路灯坏了三个月，没有人来修理{mark}", date, *["x"] * 1_996) for mark, date in (("。", 2), ("", 1))
    ]
    settings = {"order": "date", "within": ["1995"]}
    with find_in_sheet(Sheet(names, rows, 2, "letters"), ["body"], settings) as found:
        assert found.groups.members() == [[1, 0]]


def test_a_wrong_encoding_is_named(tmp_path: Path) -> None:
    path = tmp_path / "letters.csv"
    path.write_bytes("标题\n路灯\n".encode("gbk"))
    with pytest.raises(ConfigError, match=r"line 1 does not fit; name another one, .+ gb18030"):
        read_csv(path, "utf-8")
    with pytest.raises(ConfigError, match="no such encoding"):
        read_csv(path, "gb99")


@pytest.mark.parametrize("damage", [b"\xff", "路".encode()[:2], b"\xc2\xc3"])
@pytest.mark.parametrize("count", [1, 60])
def test_a_damaged_line_is_named(tmp_path: Path, damage: bytes, count: int) -> None:
    """UTF-8 with a few damaged bytes, as of a program that cuts texts, is in no other encoding."""
    path = tmp_path / "letters.csv"
    text = csv_of(LETTERS[:count])
    path.write_bytes(text.encode() + "路灯坏了".encode() + damage + "，停水\r\n".encode() + text.encode())
    line = text.count("\n") + 1
    with pytest.raises(ConfigError, match=f"'utf-8': line {line} does not fit; .+ save the file as UTF-8"):
        read_csv(path)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "gb18030"])
def test_a_damaged_line_is_named_in_each_encoding(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "letters.csv"
    damage = "\ud800".encode("utf-16-le", "surrogatepass") if encoding == "utf-16" else b"\xff"
    before = "标题\n" + "上一上海\n" * 7  # UTF-16 has the byte of a line feed in 上
    path.write_bytes(before.encode(encoding) + damage + "路灯\n".encode("utf-16-le"))
    with pytest.raises(ConfigError, match="line 9 does not fit"):
        read_csv(path, encoding)


def test_short_and_blank_lines() -> None:
    sheet = sheet_of([["a", "b"], ["1"], ["2", "", "", ""]], 2, "x")
    assert sheet.rows == [("1", None), ("2", None)]


@pytest.mark.parametrize(
    ("header", "warns"),
    [
        (["letters of 2024", None], True),
        (["sep=", None], True),
        (["person", None, "text", None], True),
        ([None, "text"], False),
        (["person", "text", None], False),
        (["text", None, None], True),
        (["text", ""], True),
    ],
)
def test_a_first_row_that_names_few_columns_is_doubted(header: list[str | None], warns: bool) -> None:
    """A frame of pandas has its row numbers in a first column without a name."""
    notes = sheet_of([header, ["x"] * len(header)], 2, "x").notes
    assert [str(note).startswith("warning: the first row names only") for note in notes] == [True] * warns


def test_rows_have_the_numbers_that_a_spreadsheet_shows(tmp_path: Path) -> None:
    """A blank line is a row there, too."""
    path = tmp_path / "letters.csv"
    path.write_text("\n\ntitle,body\na,1\n\nb,2\n\n\n", encoding="utf-8")
    sheet = read_csv(path)
    assert sheet.names == ("title", "body")
    assert sheet.first_row == 4
    assert sheet.rows == [("a", "1"), (None, None), ("b", "2")]


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_separator_is_detected_below_blank_lines(tmp_path: Path, separator: str) -> None:
    path = tmp_path / "letters.csv"
    path.write_text("\n\n" + csv_of(LETTERS[:9], separator), encoding="utf-8")
    assert read_csv(path).rows == LETTERS[:9]


def test_an_encoding_is_detected_below_a_megabyte_of_ascii(tmp_path: Path) -> None:
    path = tmp_path / "letters.csv"
    plain = "1,the lamp is broken\n" * 60_000
    for text, encoding in ((FRENCH.partition("\n")[2], "cp1252"), (csv_of(LETTERS), "gbk")):
        path.write_bytes(("id,text\n" + plain + text + plain).encode(encoding))
        assert path.stat().st_size > 2_000_000
        assert read_csv(path).rows[60_000] == tuple(next(csv.reader(io.StringIO(text, newline=""))))


def test_formulas_are_made_harmless_and_nothing_else_is_changed(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    write_csv(path, ["title", "=size"], [["=1+1", 3], ["-12.5", True], ["路灯，\n坏了", None]])
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")
    with path.open(encoding="utf-8-sig", newline="") as file:
        assert list(csv.reader(file)) == [
            ["title", "'=size"],
            ["'=1+1", "3"],
            ["-12.5", "True"],
            ["路灯，\n坏了", ""],
        ]


@given(st.lists(st.text()))
def test_names_become_unique_whatever_their_case(names: list[str]) -> None:
    found = unique_names(names)
    assert len(found) == len(names)
    assert len({name.casefold() for name in found}) == len(names)
    assert all(found)
