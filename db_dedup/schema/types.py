"""Column types and expressions of our tables. How a database writes them is asked of its dialect."""

from datetime import datetime
from typing import Any, Final

from sqlalchemy import BigInteger, DateTime, Dialect, LargeBinary, String, TypeDecorator
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler, TypeCompiler
from sqlalchemy.sql.functions import FunctionElement

from db_dedup.dialects import named_dialect
from db_dedup.dialects.capabilities import ColumnTypes
from db_dedup.records.keys import MAX_KEY_LENGTH

_SIGN_BIT = 1 << 63
_MODULUS = 1 << 64


def to_signed(fingerprint: int) -> int:
    """Return the BIGINT with the same 64 bits as an unsigned fingerprint."""
    return fingerprint - _MODULUS if fingerprint >= _SIGN_BIT else fingerprint


def to_unsigned(stored: int) -> int:
    """Return the fingerprint with the same 64 bits as a stored BIGINT."""
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

    With a length it holds that many characters, else any text.
    """


class _RowId(BigInteger):
    """A number that the database gives a row, and that other rows refer to."""


class _Digest(LargeBinary):
    """16 bytes."""


class _Sketch(LargeBinary):
    """A sketch: eight bytes a value, 24 MinHash bands and up to two thousand passage hashes. Or the set of a
    row's features, which is smaller."""


class _Packed(LargeBinary):
    """A part of the index of sketches, as `flow.candidates.segments` packs it: at most some 100 KB."""


class _Timestamp(DateTime):
    """A moment in UTC, without a time zone, to the microsecond."""


class _Nonce(BigInteger):
    """The type of `NewNonce`; no value of it is ever read or written by us."""


KeyText: Final = ExactText(MAX_KEY_LENGTH)
LongText: Final = ExactText()
RowId: Final = _RowId()
Digest: Final = _Digest(16)
Sketch: Final = _Sketch()
Packed: Final = _Packed()
Timestamp: Final = _Timestamp()
Nonce: Final = _Nonce()


class NewNonce(FunctionElement[Any]):
    """A value that no other row of our queue has; it changes no state of the session."""

    inherit_cache = True


class UtcNow(FunctionElement[datetime]):
    """The database's own clock, as `Timestamp` keeps it."""

    inherit_cache = True
    type = Timestamp


@compiles(ExactText)
def _exact_text(type_: ExactText, compiler: TypeCompiler, **_: Any) -> str:
    return named_dialect(compiler.dialect.name).exact_text(type_.length, compiler.dialect)


@compiles(_RowId)
def _row_id(_type: _RowId, compiler: TypeCompiler, **_: Any) -> str:
    return _declared(compiler).row_id


@compiles(_Digest)
def _digest(_type: _Digest, compiler: TypeCompiler, **_: Any) -> str:
    return _declared(compiler).digest


@compiles(_Sketch)
def _sketch(_type: _Sketch, compiler: TypeCompiler, **_: Any) -> str:
    return _declared(compiler).sketch


@compiles(_Packed)
def _packed(_type: _Packed, compiler: TypeCompiler, **_: Any) -> str:
    return _declared(compiler).packed


@compiles(_Timestamp)
def _timestamp(_type: _Timestamp, compiler: TypeCompiler, **_: Any) -> str:
    return _declared(compiler).timestamp


@compiles(_Nonce)
def _nonce(_type: _Nonce, compiler: TypeCompiler, **_: Any) -> str:
    return _declared(compiler).nonce


@compiles(NewNonce)
def _new_nonce(_element: NewNonce, compiler: SQLCompiler, **_: Any) -> str:
    return _declared(compiler).new_nonce


@compiles(UtcNow)
def _utc_now(_element: UtcNow, compiler: SQLCompiler, **_: Any) -> str:
    return _declared(compiler).utc_now


def _declared(compiler: SQLCompiler | TypeCompiler) -> ColumnTypes:
    return named_dialect(compiler.dialect.name).column_types
