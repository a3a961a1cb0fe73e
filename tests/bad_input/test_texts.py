"""Texts as odd as a database takes them: each is read, none is shown, and none takes for ever."""

from __future__ import annotations

import json

import pytest
from sqlalchemy import text

from tests.bad_input.conftest import NEAR, OTHER, SAME, stored_rows, unharmed, watch
from tests.cli.conftest import run, succeed
from tests.dialects.tables import fill
from tests.dialects.tables import run as make
from tests.servers import Database

TEXT_TYPES = {"sqlite": "TEXT", "postgresql": "TEXT", "mariadb": "LONGTEXT CHARACTER SET utf8mb4"}
FIVE_MB = 5_000_000


def make_petitions(database: Database, bodies: list[str | None]) -> None:
    make(database, f"CREATE TABLE petitions (id INTEGER PRIMARY KEY, body {TEXT_TYPES[database.name]})")
    for i, body in enumerate(bodies):
        fill(database, "INSERT INTO petitions VALUES (:id, :body)", [{"id": i, "body": body}])


LONG_TEXTS = {
    "sentences": OTHER * (FIVE_MB // len(OTHER.encode())),
    "one character": "的" * (FIVE_MB // 3),
    "no two alike": "".join(chr(0x4E00 + i * 7919 % 20000) for i in range(FIVE_MB // 3)),
    "digits": "0123456789" * (FIVE_MB // 10),
    "emoji": "😀👩‍👩‍👧‍👦" * (FIVE_MB // 29),
    "marks on one letter": "a" + "\u0301\u0323" * (FIVE_MB // 4),
    "blanks": " \u3000\n" * (FIVE_MB // 5),
    "ligatures": "\ufdfa" * (FIVE_MB // 54),  # each becomes eighteen characters
}
WITHOUT_FEATURES = ("blanks", "emoji")


@pytest.mark.parametrize("kind", LONG_TEXTS)
def test_five_megabytes_in_one_text(sqlite_database: Database, kind: str) -> None:
    long = LONG_TEXTS[kind]
    make_petitions(sqlite_database, [SAME, long, NEAR, long])
    dedup = watch(sqlite_database)
    assert dedup.scan().rows == 4
    assert {match.row_key for match in dedup.check({"body": NEAR})} == {"0", "2"}
    copies = {match.row_key for match in dedup.check({"body": long})}
    assert copies == (set() if kind in WITHOUT_FEATURES else {"1", "3"})


def test_five_megabytes_on_each_database(database: Database) -> None:
    long = LONG_TEXTS["sentences"]
    if database.name == "mariadb":  # the server's own packets hold 16 MB
        long = long[: FIVE_MB // 3]
    make_petitions(database, [SAME, long, NEAR, long])
    dedup = watch(database)
    assert dedup.scan().copies == 1
    assert {match.row_key for match in dedup.check({"body": long})} == {"1", "3"}
    assert dedup.scan().segmented <= 2  # the long text is not segmented again


INVISIBLE = {
    "zero width space": "\u200b",
    "right to left mark": "\u200f",
    "override": "\u202e",
    "byte order mark": "\ufeff",
    "soft hyphen": "\u00ad",
}


@pytest.mark.parametrize("kind", INVISIBLE)
def test_invisible_characters_do_not_hide_a_duplicate(sqlite_database: Database, kind: str) -> None:
    mark = INVISIBLE[kind]
    make_petitions(sqlite_database, [SAME, mark + SAME, SAME.replace("。", "。" + mark), OTHER])
    dedup = watch(sqlite_database)
    dedup.scan()
    [group] = dedup.groups()
    assert dedup.members(group.group_id) == ["0", "1", "2"]


ODD_TEXTS = [
    "\u202eهذا نص من اليمين إلى اليسار طويل بما يكفي ليكون شكوى كاملة عن الماء والكهرباء\u202c",
    "שלום לכולם, אין מים בבית כבר שלושה ימים ואף אחד לא עונה לטלפון של העירייה",
    "😀😃😄😁 停水三天了 👩‍👩‍👧‍👦 没有人管 🇨🇳🏳️‍🌈 请尽快处理",
    "e\u0301le\u0300ve n\u0303andu\u0301 Z\u0351ͫ\u0343ͪ\u0302 a\u0308o\u0308u\u0308 marks everywhere",
    "𠮷野家門口堆滿垃圾𡃁𠝹沒有人清理已經很久了",
    "line\u2028separator\u2029and\x85others\x0b\x0c\x1c\x1d\x1e\x1f of the kind",
    "\ufffe\uffff\U0010ffff no characters at all but allowed in text",
    "'; DROP TABLE petitions; -- %s %(x)s :name {0} {{ }} \\ \\0 \\x00 ${HOME} `id`",
    "[bold red]markup[/bold red] [link=x]y[/link] :smile: \x1b[31mred\x1b[0m",
]


def test_odd_texts_are_read_the_same_everywhere(database: Database) -> None:
    """A row finds itself and its copy by its own text, whatever the text is."""
    bodies = [body for body in ODD_TEXTS for _ in range(2)]
    make_petitions(database, [*bodies, None, "", " "])
    dedup = watch(database)
    report = dedup.scan()
    assert (report.rows, report.copies) == (len(bodies) + 3, len(ODD_TEXTS))
    for i, body in enumerate(ODD_TEXTS):
        found = {match.row_key for match in dedup.check({"body": body})}
        assert {str(2 * i), str(2 * i + 1)} <= found
    url = ["petitions", "--url", database.url]
    assert len(succeed("pairs", *url, "--format", "json").json()) == report.pairs + report.copies


def test_fingerprints_of_odd_texts_are_the_same_in_all_databases(
    request: pytest.FixtureRequest,
) -> None:
    found = []
    for kind in ("sqlite", "postgresql", "mariadb", "mysql"):
        database: Database = request.getfixturevalue(f"{kind}_database")
        make_petitions(database, [*ODD_TEXTS])
        dedup = watch(database)
        dedup.scan()
        stored = dedup.database.tables.fingerprint
        with database.engine.connect() as connection:
            query = stored.select().order_by(stored.c.row_key)
            found.append(
                [(row.row_key, row.fingerprint, bytes(row.digest)) for row in connection.execute(query)]
            )
    assert all(rows == found[0] for rows in found)


def test_texts_with_a_nul(request: pytest.FixtureRequest) -> None:
    """SQLite and MariaDB keep them; PostgreSQL has no such texts, but a check may bring one."""
    for kind in ("sqlite_database", "mariadb_database", "mysql_database"):
        database: Database = request.getfixturevalue(kind)
        make_petitions(database, [SAME, SAME + "\0", "\0" + SAME + "\0" + OTHER, "\0", "\0\0\0"])
        with unharmed(database):
            dedup = watch(database)
            report = dedup.scan()
        assert (report.rows, report.too_little_text) == (5, 2)
        assert {"0", "1"} <= {match.row_key for match in dedup.check({"body": NEAR + "\0"})}


def test_a_check_of_any_text(database: Database) -> None:
    make_petitions(database, [SAME, OTHER])
    watch(database).scan()
    odd: list[object] = [
        "\0",
        SAME + "\0",
        "\ud800",
        SAME + "\udfff",
        "\udc80" * 3,
        *ODD_TEXTS,
        {"a": "\ud800"},
        ["\0"],
    ]
    for body in odd:
        arguments = ["check", "petitions", "--url", database.url]
        found = succeed(*arguments, stdin=json.dumps({"body": body})).json()
        is_same = isinstance(body, str) and SAME in body
        assert ({match["row_key"] for match in found} == {"0"}) is is_same


BROKEN_BYTES = [
    b"\xff",
    b"\xc3",
    b"\xe6\xa5",
    b"\xf0\x9f\x98",
    b"\xed\xa0\x80",
    b"\xf8\x88\x80\x80\x80",
    b"\x80" * 9,
]


@pytest.mark.parametrize("broken", BROKEN_BYTES)
def test_text_that_is_no_utf_8_is_read_as_far_as_it_goes(sqlite_database: Database, broken: bytes) -> None:
    """A cut-off character does not hide a duplicate, and the bytes stay as they are."""
    make_petitions(sqlite_database, [SAME, OTHER])
    body = "INSERT INTO petitions VALUES (:id, CAST(:body AS TEXT))"
    fill(sqlite_database, body, [{"id": i, "body": NEAR.encode() + broken} for i in (5, 6)])
    with sqlite_database.engine.connect() as connection:
        before = connection.execute(text("SELECT id, hex(body) FROM petitions")).all()
    assert watch(sqlite_database).scan().grouped_rows == 3
    found = succeed(
        "check", "petitions", "--url", sqlite_database.url, stdin=json.dumps({"body": NEAR})
    ).json()
    assert {match["row_key"] for match in found} == {"0", "5", "6"}
    expanded = succeed(
        "pairs", "petitions", "--url", sqlite_database.url, "--expand", "--format", "csv"
    ).stdout
    assert len(expanded.splitlines()) == 1 + 3
    with sqlite_database.engine.connect() as connection:
        assert connection.execute(text("SELECT id, hex(body) FROM petitions")).all() == before


def test_broken_text_is_read_through_the_users_engine(sqlite_database: Database) -> None:
    """The driver of such an engine would end with an error that shows the text."""
    make_petitions(sqlite_database, [SAME])
    insert = "INSERT INTO petitions VALUES (9, CAST(:body AS TEXT))"
    fill(sqlite_database, insert, [{"body": NEAR.encode() + b"\xff"}])
    dedup = watch(sqlite_database)
    dedup.scan()
    assert {match.row_key for match in dedup.check({"body": NEAR})} == {"0", "9"}


def test_blobs_in_a_text_column(sqlite_database: Database) -> None:
    make_petitions(sqlite_database, [SAME])
    for i, blob in enumerate([SAME.encode(), b"\xff\xfe", b"", bytes(range(256))], 1):
        fill(sqlite_database, "INSERT INTO petitions VALUES (:id, :body)", [{"id": i, "body": blob}])
    before = stored_rows(sqlite_database.engine)
    assert watch(sqlite_database).scan().copies == 1
    assert stored_rows(sqlite_database.engine) == before


def test_stdin_that_is_no_text(sqlite_database: Database) -> None:
    make_petitions(sqlite_database, [SAME, SAME])
    watch(sqlite_database).scan()
    for stdin in (b"\xff\xfe", b"\0", b'{"body": "\xff"}', b"", b"[" * 100_000):
        result = run("check", "petitions", "--url", sqlite_database.url, stdin=stdin)
        assert result.exit_code == 2
        assert result.error is not None
        assert len(str(result.error).splitlines()) == 1
