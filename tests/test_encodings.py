"""Files of Windows: with a byte order mark, in GBK and in UTF-16."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from db_dedup.config import Settings
from db_dedup.encodings import decode_utf8, detect_encoding
from db_dedup.errors import ConfigError
from db_dedup.frames.csv_file import read_csv
from db_dedup.jobs.review.label_file import read_labels

SETTINGS = "[tables.'信访件']\r\nkey = '编号'\r\n[tables.'信访件'.columns]\r\n'内容' = 1\r\n"
WORDS = "红星小区\r\n城东区\r\n"
LABELS = "key_a,key_b,label\r\n甲1,乙2,yes\r\n"


def read_settings(path: Path) -> object:
    return Settings.from_file(path).watched("信访件").key


def read_words(setting: str) -> Callable[[Path], object]:
    def read(path: Path) -> object:
        settings = path.with_name("dedup.toml")
        settings.write_text(
            f"[tables.a]\n{setting} = '{path.name}'\ncolumns = {{ b = 1 }}\n", encoding="utf-8"
        )
        watched = Settings.from_file(settings).watched("a")
        return watched.user_words or watched.stop_word_list

    return read


READERS = [
    pytest.param(read_settings, SETTINGS, ("编号",), "settings file", id="settings"),
    pytest.param(read_words("user_dictionary"), WORDS, ("红星小区", "城东区"), "word list", id="dictionary"),
    pytest.param(read_words("stop_words_file"), WORDS, ("红星小区", "城东区"), "word list", id="stop words"),
    pytest.param(
        lambda path: [(one.key_a, one.key_b) for one in read_labels(path)],
        LABELS,
        [("甲1", "乙2")],
        "label file",
        id="labels",
    ),
]


@pytest.mark.parametrize(("read", "text", "content", "what"), READERS)
def test_only_utf_8_is_read_and_other_encodings_are_named(
    tmp_path: Path, read: Callable[[Path], object], text: str, content: object, what: str
) -> None:
    path = tmp_path / "file.txt"
    for encoding in ("utf-8", "utf-8-sig"):
        path.write_bytes(text.encode(encoding))
        assert read(path) == content
    for encoding, name in (("gbk", "GBK"), ("utf-16", "UTF-16"), ("utf-32", "UTF-32")):
        path.write_bytes(text.encode(encoding))
        with pytest.raises(ConfigError) as raised:
            read(path)
        assert str(raised.value) == f"{what} {path} is not UTF-8, it seems to be {name}: save it as UTF-8"
        assert raised.value.exit_code == 2


def test_a_broken_byte_is_found() -> None:
    with pytest.raises(ConfigError, match="x is not valid UTF-8 in line 2: mend it"):
        decode_utf8(b"\xef\xbb\xbfa\nb\xe4", "x", "mend it")
    with pytest.raises(ConfigError, match="x is not UTF-8, it seems to be Windows-1252: mend it"):
        decode_utf8("un café".encode("cp1252"), "x", "mend it")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_needs_no_mark(encoding: str) -> None:
    with pytest.raises(ConfigError, match="x is not UTF-8, it seems to be UTF-16: mend it"):
        decode_utf8(SETTINGS.encode(encoding), "x", "mend it")


def test_a_short_chinese_text_is_taken_for_chinese() -> None:
    """Its bytes are as good Korean or Big5."""
    for text in ("的\n了\n", "信访件\n红星小区\n城东区\n", "[tables.信访]\nkey = '编号'\n"):
        assert detect_encoding(text.encode("gbk")) == "gb18030"


def test_a_csv_file_in_utf_16_needs_no_mark(tmp_path: Path) -> None:
    path = tmp_path / "letters.csv"
    path.write_bytes("id,标题\r\n1,路灯坏了\r\n".encode("utf-16-le"))
    assert read_csv(path).rows == [("1", "路灯坏了")]
