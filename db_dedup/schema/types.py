"""Column types that hide what differs by dialect."""

from datetime import datetime
from typing import Any, Final

from sqlalchemy import BigInteger, DateTime, Dialect, Integer, LargeBinary, String, TypeDecorator, Uuid
from sqlalchemy.dialects import mysql
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler, TypeCompiler
from sqlalchemy.sql.functions import FunctionElement

_SIGN_BIT = 1 << 63
_MODULUS = 1 << 64

MAX_KEY_LENGTH: Final = 700
"""Characters in a row key: what fits an InnoDB index (3,072 bytes) beside two integers."""


def to_signed(fingerprint: int) -> int:
    """The BIGINT with the same 64 bits as an unsigned fingerprint."""
    return fingerprint - _MODULUS if fingerprint >= _SIGN_BIT else fingerprint


def to_unsigned(stored: int) -> int:
    """The fingerprint with the same 64 bits as a stored BIGINT."""
    return stored & (_MODULUS - 1)


class Fingerprint(TypeDecorator[int]):
    """Unsigned 64 bits in Python, signed BIGINT in the database."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: int | None, dialect: Dialect) -> int | None:  # noqa: ARG002
        """Take the top bit as a sign."""
        return None if value is None else to_signed(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> int | None:  # noqa: ARG002
        """Give the top bit back its weight."""
        return None if value is None else to_unsigned(value)


class ExactText(String):
    """Text that compares by its characters: values are equal only if they are the same, blanks included.

    With a length it holds that many characters, else any text. The collation is binary and does not pad:
    SQLite's default, "C" in PostgreSQL; MariaDB and MySQL have a name each.
    """


@compiles(ExactText)
def _plain_type(type_: ExactText, compiler: TypeCompiler, **_: Any) -> str:  # noqa: ARG001
    return f"VARCHAR({type_.length})" if type_.length else "TEXT"


@compiles(ExactText, "postgresql")
def _postgresql_type(type_: ExactText, compiler: TypeCompiler, **kw: Any) -> str:
    return f'{_plain_type(type_, compiler, **kw)} COLLATE "C"'


@compiles(ExactText, "mysql", "mariadb")
def _mysql_type(type_: ExactText, compiler: TypeCompiler, **_: Any) -> str:
    # A mysql:// URL may lead to a MariaDB server, which only the connected dialect knows.
    is_mariadb = getattr(compiler.dialect, "is_mariadb", False)
    collation = "utf8mb4_nopad_bin" if is_mariadb else "utf8mb4_0900_bin"
    base = f"VARCHAR({type_.length})" if type_.length else "LONGTEXT"
    return f"{base} CHARACTER SET utf8mb4 COLLATE {collation}"


KeyText: Final = ExactText(MAX_KEY_LENGTH)
LongText: Final = ExactText()

# SQLite numbers rows only in a column that is exactly INTEGER.
RowId: Final = BigInteger().with_variant(Integer, "sqlite")

Digest: Final = LargeBinary(16).with_variant(mysql.BINARY(16), "mysql", "mariadb")

# Eight bytes a value: 24 bands, and up to two thousand passages.
Sketch: Final = LargeBinary().with_variant(mysql.BLOB(), "mysql", "mariadb")

# Always UTC, without a zone, to the microsecond.
Timestamp: Final = DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")


# No number that counts: a sequence would change the lastval() of the user's session.
Nonce: Final = BigInteger().with_variant(Uuid(), "postgresql")


class NewNonce(FunctionElement[Any]):
    """What keeps two rows of our queue apart that are alike otherwise; no session's state changes by it."""

    inherit_cache = True


@compiles(NewNonce, "sqlite")
def _sqlite_nonce(_element: NewNonce, _compiler: SQLCompiler, **_: Any) -> str:
    return "random()"


@compiles(NewNonce, "postgresql")
def _postgresql_nonce(_element: NewNonce, _compiler: SQLCompiler, **_: Any) -> str:
    return "gen_random_uuid()"


@compiles(NewNonce, "mysql", "mariadb")
def _mysql_nonce(_element: NewNonce, _compiler: SQLCompiler, **_: Any) -> str:
    return "uuid_short() & 9223372036854775807"


class UtcNow(FunctionElement[datetime]):
    """The database's own clock, as `Timestamp` keeps it."""

    inherit_cache = True
    type = Timestamp


@compiles(UtcNow, "sqlite")
def _sqlite_now(_element: UtcNow, _compiler: SQLCompiler, **_: Any) -> str:
    return "strftime('%Y-%m-%d %H:%M:%f', 'now') || '000'"


@compiles(UtcNow, "postgresql")
def _postgresql_now(_element: UtcNow, _compiler: SQLCompiler, **_: Any) -> str:
    return "clock_timestamp() AT TIME ZONE 'UTC'"


@compiles(UtcNow, "mysql", "mariadb")
def _mysql_now(_element: UtcNow, _compiler: SQLCompiler, **_: Any) -> str:
    return "UTC_TIMESTAMP(6)"
