"""What a PostgreSQL server answers to a connection, in whatever language it is set to."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from sqlalchemy.exc import OperationalError

from db_dedup.dialects import dialect_for, open_engine
from db_dedup.errors import DatabaseError, DatabaseUnavailableError, DedupError

ASKS_FOR_PASSWORD = b"R" + struct.pack("!ii", 8, 3)


@contextmanager
def server(severity: str, message: str, *, asks: bool = False) -> Iterator[int]:
    """A server that refuses one connection with these words, and `asks` for a password first; its port."""
    fields = "".join(f"{kind}{value}\0" for kind, value in (("S", severity), ("C", "XX000"), ("M", message)))
    reply = fields.encode() + b"\0"
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as pool:

        def refuse() -> None:
            with listening.accept()[0] as connection:
                connection.recv(4096)
                if asks:
                    connection.sendall(ASKS_FOR_PASSWORD)
                    connection.recv(4096)
                connection.sendall(b"E" + struct.pack("!i", 4 + len(reply)) + reply)

        result = pool.submit(refuse)
        yield listening.getsockname()[1]
        result.result()


def refused(severity: str, message: str, *, asks: bool = False, database: str = "office") -> DedupError:
    with server(severity, message, asks=asks) as port:
        engine = open_engine(
            f"postgresql://clerk:secret@127.0.0.1:{port}/{database}?sslmode=disable&gssencmode=disable"
        )
        with pytest.raises(OperationalError) as caught:
            engine.connect()
        engine.dispose()
    return dialect_for(engine).translate_error(caught.value)


@pytest.mark.parametrize(
    ("severity", "message"),
    [
        ("FATAL", 'password authentication failed for user "clerk"'),
        ("FATAL", 'role "clerk" is not permitted to log in'),
        ("致命错误", '用户 "clerk" Password 认证失败'),
        ("致命错误", '数据库 "office" 不存在'),
        ("致命错误", '没有用于主机 "127.0.0.1", 用户 "clerk", 数据库 "office", 没有加密 的 pg_hba.conf 记录'),
        ("FATAL", "Datenbank »office« existiert nicht"),
        ("ВАЖНО", 'база данных "office" не существует'),
        ("FATAL", "no existe la base de datos «office»"),
    ],
)
def test_a_refusal_is_final(severity: str, message: str) -> None:
    """A worker that took it for an interruption would wait forever."""
    found = refused(severity, message)
    assert type(found) is DatabaseError
    assert message in str(found)


@pytest.mark.parametrize(
    ("severity", "message"),
    [
        ("FATAL", "the database system is starting up"),
        ("FATAL", "sorry, too many clients already"),
        ("FATAL", 'too many connections for role "clerk"'),
        ("FATAL", 'connection slots are reserved for roles of the "pg_use_reserved_connections" role'),
        ("致命错误", "数据库系统启动中"),
        ("致命错误", "对不起, 已经有太多的客户"),
        ("致命错误", '由角色"clerk"发起的连接太多了'),
        ("FATAL", "zu viele Verbindungen von Rolle »clerk«"),
        ("FATAL", "trop de connexions pour le rôle « clerk »"),
        ("FATAL", 'server login has been failing, cached error: too many connections for role "clerk"'),
        ("FATAL", 'could not open file "global/pg_filenode.map": Too many open files in system'),
        ("FATAL", 'database "office" is not currently accepting connections'),
        ("FATAL", "das Datenbanksystem startet"),
        ("ВАЖНО", "извините, уже слишком много клиентов"),
    ],
)
def test_what_passes_is_waited_for(severity: str, message: str) -> None:
    assert type(refused(severity, message)) is DatabaseUnavailableError


WRONG_PASSWORD = [
    ("FATAL", 'password authentication failed for user "clerk"'),
    ("致命错误", '用户 "clerk" Password 认证失败'),
    ("FATAL", "Passwort-Authentifizierung für Benutzer »clerk« fehlgeschlagen"),
    ("FATAL", "authentification par mot de passe échouée pour l'utilisateur  «\xa0clerk\xa0»"),
    ("ВАЖНО", 'пользователь "clerk" не прошёл проверку подлинности (по паролю)'),
    ("FATAL", 'ユーザー"clerk"のパスワード認証に失敗しました'),
]


@pytest.mark.parametrize(("severity", "message"), WRONG_PASSWORD)
def test_a_wrong_password_is_told_in_every_language(severity: str, message: str) -> None:
    found = refused(severity, message, asks=True)
    assert type(found) is DatabaseError
    assert str(found).startswith("the server does not take this user and password: ")
    assert "clerk" in str(found)
    assert "secret" not in str(found)


@pytest.mark.parametrize(
    ("severity", "message", "database"),
    [
        ("FATAL", 'database "office" does not exist', "office"),
        ("致命错误", '数据库 "clerk" 不存在', "clerk"),
        (
            "致命错误",
            '没有用于主机 "::1", 用户 "clerk", 数据库 "office" 的 pg_hba.conf 记录',
            "office",
        ),
    ],
)
def test_what_is_refused_after_the_password_is_another_fault(
    severity: str, message: str, database: str
) -> None:
    found = refused(severity, message, asks=True, database=database)
    assert type(found) is DatabaseError
    assert str(found).startswith("cannot connect: ")
    assert message in str(found)


def test_too_many_connections_of_a_user_are_waited_for() -> None:
    found = refused("致命错误", '由角色"clerk"发起的连接太多了', asks=True)
    assert type(found) is DatabaseUnavailableError
