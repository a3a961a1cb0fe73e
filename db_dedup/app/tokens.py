"""The tokens of clients of the HTTP service. Only their digests are stored.

A token is 256 random bits, too many to be guessed, so a fast hash (SHA-256) is safe to store.
"""

import hmac
import os
import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from db_dedup.encodings import read_utf8
from db_dedup.errors import ConfigError, UnknownNameError
from db_dedup.translation import Phrase

READ: Final = "read"
CHECK: Final = "check"
LABEL: Final = "label"
SCOPES: Final = (READ, CHECK, LABEL)
"""What a token allows: to read the answer and the texts of rows, to check a record, to change labels."""

TOKENS_VARIABLE: Final = "DB_DEDUP_SERVER_TOKEN_DIGESTS"

_PREFIX: Final = "dedup_"
_NAME: Final = re.compile(r"[\w.-]{1,64}")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_PARTS: Final = 3
_HEADER: Final = "# Clients of `db-dedup serve`: name, scopes, SHA-256 of the token.\n"


@dataclass(frozen=True)
class Client:
    """Who sends a request, and what they may do."""

    name: str
    scopes: frozenset[str]


ANYBODY: Final = Client("local", frozenset(SCOPES))
"""Every client of a service on loopback without tokens."""


class Tokens:
    """The tokens that a file, or the environment, allows. A changed file counts from the next request on."""

    def __init__(self, file: Path | None = None) -> None:
        """Read them.

        Raises:
            ConfigError: the file cannot be read, or a line is none of ours.
        """
        self._file = file
        self._others = _entries(os.environ.get(TOKENS_VARIABLE, "").split(";"), TOKENS_VARIABLE)
        self._read_at: tuple[int, int] | None = None
        self._entries: Sequence[tuple[bytes, Client]] = ()
        self._refresh()

    @property
    def are_used(self) -> bool:
        """Whether clients need a token."""
        return self._file is not None or bool(self._others)

    def client(self, token: str) -> Client | None:
        """Return whose token this is; None for an unknown one. The time it takes tells nothing about it.

        Raises:
            ConfigError: the file has become unreadable.
        """
        self._refresh()
        digest = _digest(token).encode()
        found = None
        for known, client in (*self._entries, *self._others):
            if hmac.compare_digest(known, digest):
                found = client
        return found

    def shared_secret(self) -> bytes | None:
        """Return a secret that all services with the same tokens have; None without tokens.

        Raises:
            ConfigError: the file has become unreadable.
        """
        self._refresh()
        digests = sorted({digest for digest, _ in (*self._entries, *self._others)})
        return sha256(b"forms " + b" ".join(digests)).digest() if digests else None

    def _refresh(self) -> None:
        if self._file is None:
            return
        try:
            now = self._file.stat()
        except OSError as error:
            raise ConfigError(
                "no file of tokens {file} ({reason}): `db-dedup serve --new-token read,check` writes one",
                file=self._file,
                reason=error.strerror,
            ) from None
        if self._read_at != (now.st_mtime_ns, now.st_size):
            lines = read_utf8(self._file, Phrase("file of tokens")).splitlines()
            self._entries = _entries(lines, str(self._file))
            self._read_at = now.st_mtime_ns, now.st_size


def new_token(scopes: Iterable[str], name: str) -> tuple[str, str]:
    """Return (a new token, the line that allows it).

    Raises:
        UnknownNameError: there is no such scope.
        ConfigError: the name has other characters than letters, digits, `_`, `.` and `-`.
    """
    chosen = list(dict.fromkeys(scopes))
    for scope in chosen:
        _require_scope(scope)
    if not _NAME.fullmatch(name):
        raise ConfigError("the name of a client has up to 64 letters, digits, '_', '.' and '-'")
    token = _PREFIX + secrets.token_urlsafe(32)
    return token, f"{name} {','.join(chosen)} {_digest(token)}"


def add_token(file: Path, line: str) -> None:
    """Append the line of a token to a file, which only its owner may read.

    Raises:
        ConfigError: the file cannot be written.
    """
    try:
        opened = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(opened, "a+b") as lines:
            lines.seek(max(0, lines.tell() - 1))
            last = lines.read(1)
            # Many editors write no end of line behind the last one.
            before = _HEADER if not last else "" if last == b"\n" else "\n"
            lines.write(f"{before}{line}\n".encode())
    except OSError as error:
        raise ConfigError("cannot write {file}: {reason}", file=file, reason=error.strerror) from None


def _entries(lines: Iterable[str], source: str) -> Sequence[tuple[bytes, Client]]:
    found = []
    for number, line in enumerate(lines, 1):
        parts = line.split()
        if not parts or parts[0].startswith("#"):
            continue
        if len(parts) != _PARTS or not _DIGEST.fullmatch(parts[2]):
            # The line may be a token that somebody has put here: it is not shown.
            raise ConfigError(
                "{source}, line {number}: write a name, scopes and the SHA-256 of a token",
                source=source,
                number=number,
            )
        scopes = parts[1].split(",")
        for scope in scopes:
            _require_scope(scope)
        found.append((parts[2].encode(), Client(parts[0], frozenset(scopes))))
    return found


def _require_scope(scope: str) -> None:
    if scope not in SCOPES:
        raise UnknownNameError(Phrase("scope of a token"), scope, SCOPES)


def _digest(token: str) -> str:
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
