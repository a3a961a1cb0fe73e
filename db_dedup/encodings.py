"""The encodings of the user's files: detected by their bytes, and named where only UTF-8 is read."""

import codecs
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Final

from db_dedup.errors import ConfigError
from db_dedup.translation import Phrase

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_NATIONAL: Final = ("gb18030", "big5", "cp1252", "shift_jis", "euc_kr")
"""What spreadsheets write where it is not Unicode: China, Taiwan, the West, Japan, Korea."""
_WELL_KNOWN_NAMES: Final[Mapping[str, str]] = {
    "gb18030": "GBK",
    "big5": "Big5",
    "cp1252": "Windows-1252",
    "shift_jis": "Shift-JIS",
    "euc_kr": "EUC-KR",
    "utf-16-le": "UTF-16",
    "utf-16-be": "UTF-16",
}
_SAMPLE_BYTES: Final = 1_000_000
_VALID_FOR_ONE_DAMAGED: Final = 10


def detect_encoding(content: bytes) -> str | None:
    """Detect the encoding: by its byte order mark, UTF-8 if nearly all is valid, or the likeliest other.

    Returns:
        Python's name of it; None where nothing fits. A few bytes may not be valid in it.
    """
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return encoding
    # UTF-16 without its mark: an ASCII character, with which nearly every file begins, is one byte and a NUL.
    if len(content) >= 2 and (content[0] == 0) != (content[1] == 0):
        return "utf-16-be" if content[0] == 0 else "utf-16-le"
    try:
        content.decode()
    except UnicodeDecodeError as error:
        if _is_damaged_utf8(content, error.start):
            return "utf-8"
        from charset_normalizer import from_bytes  # noqa: PLC0415 - few files need it, and it is slow to load

        found = from_bytes(_sample(content, error.start), cp_isolation=list(_NATIONAL))
        # Of a short text several may be as likely: Chinese comes first.
        best = min(
            found, key=lambda it: (it.chaos, -it.coherence, _NATIONAL.index(it.encoding)), default=None
        )
        return None if best is None else best.encoding
    return "utf-8"


def _is_damaged_utf8(content: bytes, first: int) -> bool:
    """Return whether nearly all characters around the first invalid byte that are not ASCII are valid UTF-8.

    Texts in a national encoding have few byte sequences that are valid UTF-8.
    """
    near = content[max(0, first - _SAMPLE_BYTES // 2) : first + _SAMPLE_BYTES // 2].decode(errors="replace")
    damaged = near.count("\ufffd")
    valid = len(near) - len(near.encode("ascii", "ignore")) - damaged
    return valid >= _VALID_FOR_ONE_DAMAGED * damaged


def _sample(content: bytes, first: int) -> bytes:
    """Return about a megabyte of the lines that are not ASCII, in which all encodings agree.

    No character of the national encodings has a line feed among its bytes.

    Args:
        content: of the file.
        first: the position of a byte that is not ASCII; the sample begins with its line.
    """
    lines = BytesIO(content)
    lines.seek(content.rfind(b"\n", 0, first) + 1)
    taken, size = [], 0
    for line in lines:
        if size >= _SAMPLE_BYTES:
            break
        if not line.isascii():
            taken.append(line)
            size += len(line)
    return b"".join(taken)


def read_utf8(path: Path, what: str) -> str:
    """Read a file that must be UTF-8; a byte order mark at its beginning is left out.

    Args:
        path: the file.
        what: what the file is, for the error, such as "word list".

    Raises:
        ConfigError: It cannot be read, or is in another encoding.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(
            "cannot read {what} {path}: {reason}", what=what, path=path, reason=error.strerror
        ) from None
    except ValueError as error:  # no file can have this name
        raise ConfigError(
            "cannot read {what} {path!r}: {error}", what=what, path=str(path), error=error
        ) from None
    return decode_utf8(content, Phrase("{what} {path}", what=what, path=path), Phrase("save it as UTF-8"))


def decode_utf8(content: bytes, name: str, remedy: str) -> str:
    """Decode UTF-8; a byte order mark at its beginning is left out.

    Args:
        content: of a file.
        name: of the file, for the error.
        remedy: what to do about another encoding, for the error.

    Raises:
        ConfigError: It is in another encoding, which is named as far as it can be guessed.
    """
    encoding = detect_encoding(content)
    if encoding not in (None, "utf-8", "utf-8-sig"):
        guess = _WELL_KNOWN_NAMES.get(encoding, encoding.upper())
        raise ConfigError(
            "{name} is not UTF-8, it seems to be {guess}: {remedy}", name=name, guess=guess, remedy=remedy
        )
    content = content.removeprefix(codecs.BOM_UTF8)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            "{name} is not valid UTF-8 in line {line}: {remedy}", name=name, line=line, remedy=remedy
        ) from None
