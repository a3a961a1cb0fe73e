"""What `sql grants` prints: with these grants all commands work, without any of them some does not."""

import json
import re
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import Connection, create_engine, make_url, text
from sqlalchemy.exc import DBAPIError

from db_dedup import Database as OurDatabase
from db_dedup import Deduplicator
from db_dedup.cli.commands import load_commands
from db_dedup.errors import DedupError
from db_dedup.jobs.scan import full_scan, sketch_index
from db_dedup.sample import Sample
from db_dedup.schema.views import FIXED_VIEWS
from tests.cli.conftest import TABLE_SETTINGS, fail, run, succeed, view
from tests.guest.rights import faults_of_reserving, units
from tests.scan.conftest import COLUMNS, fill_database
from tests.servers import Database

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "grants.md").read_text(encoding="utf-8")
ACCOUNTS = ("owner", "scanner", "attacher", "clerk", "reader")
VIEWS = (*FIXED_VIEWS, "duplicates_of_petitions")
RECORD = json.dumps({"title": "关于停水", "content": "小区停水三天没有人管，请尽快处理"})

pytestmark = pytest.mark.usefixtures("folder")


def commands_of(account: str) -> list[str]:
    (cell,) = re.findall(rf"^\| `dedup_{account}` \| (.+) \|$", PAGE, flags=re.MULTILINE)
    return re.findall(r"`([\w-]+)`", cell)


ARGUMENTS: Mapping[str, list[list[str]]] = {
    "upgrade": [["upgrade"]],
    "uninstall": [["uninstall", "--yes"]],
    "scan": [["scan", "petitions"]],
    "rebuild": [["scan", "petitions", "--rebuild"]],
    "pairs": [["pairs", "petitions"], ["pairs", "petitions", "--expand"]],
    "explain": [["explain", "petitions", "76", "77"]],
    "sql": [["sql", "upgrade"], ["sql", "view", "petitions"], ["sql", "grants", "petitions"]],
    "label": [
        ["label", "petitions", "--answers", "yes.csv"],
        ["label", "petitions", "--answers", "no.csv"],
        ["label", "petitions", "--undo", "76", "77"],
    ],
    "calibrate": [["calibrate", "petitions", "--labels", "both.csv"]],
    "compare": [["compare", "petitions", "--pairs", "both.csv", "--segmenter", "words", "--steps", "alone"]],
    "export": [["export", "petitions"]],
    "report": [["report", "petitions", "--output", "report.html", "--by", "region", "--force"]],
    "status": [["status"]],
    "worker": [["worker", "petitions", "--drain"]],
    "schedule": [],  # it runs scans for ever
    "run": [],  # worker, schedule and service for ever: what it does is done by these commands
    "serve": [],  # it answers for ever; `faults_of_reserving` does what no other command does
}


def statements_of(database: Database) -> dict[str, list[str]]:
    """account -> its statements, as the command prints them."""
    Path("dedup.toml").write_text(
        f"[database]\nurl = {json.dumps(database.url)}\n{TABLE_SETTINGS.format(settings='')}"
    )
    return {
        account: statements_in(succeed("sql", "grants", "petitions", "--part", account).stdout)
        for account in ACCOUNTS
    }


def statements_in(script: str) -> list[str]:
    lines = [line for line in script.splitlines() if not line.startswith("--")]
    assert all(line.endswith(";") for line in lines), script
    return [line.removesuffix(";") for line in lines]


@dataclass(frozen=True)
class Office:
    """A server's administrator, and the accounts of the work."""

    database: Database
    statements: Mapping[str, list[str]]

    def create_accounts(self) -> None:
        is_postgresql = self.database.name == "postgresql"
        create = "CREATE ROLE dedup_{} LOGIN" if is_postgresql else "CREATE USER dedup_{}"
        self.do(*(create.format(account) for account in ACCOUNTS))

    def grant(self, account: str) -> None:
        self.do(*self.statements[account])

    def do(self, *statements: str) -> None:
        with self.database.engine.begin() as connection:
            for statement in statements:
                connection.execute(text(statement))

    def url(self, account: str) -> str:
        url = make_url(self.database.url).set(username=f"dedup_{account}", password=None)
        return url.render_as_string(hide_password=False)

    def faults(self, account: str) -> list[str]:
        """What goes wrong when the account does all its work."""
        return list(self.work(account))

    def work(self, account: str, commands: Sequence[str] = ()) -> Iterator[str]:
        """Do all the work of an account, or these commands; gives each fault."""
        url = json.dumps(self.url(account))
        Path("dedup.toml").write_text(f"[database]\nurl = {url}\n{TABLE_SETTINGS.format(settings='')}")
        self.write_labels()
        for command in commands or commands_of(account):
            for arguments in ARGUMENTS.get(command, [[command, "petitions"]]):
                if command == "worker":
                    self.give_up_a_change()
                result = run(*arguments, stdin=RECORD)
                if result.exit_code != 0:
                    yield f"{' '.join(arguments)}: {result.error or result}"
                elif command == "attach":
                    yield from self.faults_of_writing()
            if command == "serve":
                yield from faults_of_reserving(self.url(account), RECORD)

    def faults_of_writing(self) -> list[str]:
        """What the user's own writes meet: a trigger works by the rights of who made it."""
        ours = OurDatabase(self.database.engine)
        try:
            with ours.translate_driver_errors():
                self.do("UPDATE petitions SET content = CONCAT(content, '又') WHERE id = 80")
        except DedupError as error:
            return [f"a write: {error}"]
        return []

    @staticmethod
    def write_labels() -> None:
        """Answers of a person: one, another to the same question, and some for two pairs."""
        yes, no, other = "76,77,yes\n", "76,77,no\n", "73,74,yes\n"
        for name, lines in (("yes", yes), ("no", no), ("both", no + other)):
            Path(f"{name}.csv").write_text(f"key_a,key_b,label\n{lines}", encoding="utf-8")

    def give_up_a_change(self) -> None:
        """Queue some, and one that no worker can handle."""
        change, watched = view(self.database, "change"), view(self.database, "watched_table")
        self.do(
            "UPDATE petitions SET content = CONCAT(content, '再') WHERE id = 78",
            "UPDATE petitions SET id = id + 1000 "
            "WHERE id = (SELECT * FROM (SELECT MAX(id) FROM petitions) p)",
            f"INSERT INTO {change} (table_id, row_key, operation, queued_at) "
            f"SELECT id, 'much too long', 'X', CURRENT_TIMESTAMP FROM {watched}",
        )

    def forget_all(self) -> None:
        """As if nothing had been scanned."""
        for table in ("pair", "fingerprint", "scan", "watched_table"):
            self.do(f"DELETE FROM {view(self.database, table)}")

    def drop_accounts(self) -> None:
        self.database.engine.dispose()
        with self.database.engine.begin() as connection:
            for account in (*(f"dedup_{account}" for account in ACCOUNTS), "petitions_owner"):
                _drop(connection, account)

    def disturb(self, sample: Sample, round_: int) -> None:
        """Change the table so that the next scan has everything to do: rows, pairs and groups come, change
        and go."""
        first, second, third = (p.id for p in sample.petitions[round_ * 3 % 75 :][:3])
        some = "一大早就有人在楼下放音乐跳舞，老人休息不好，请管一管。"
        self.do(
            f"DELETE FROM petitions WHERE id = {first}",
            f"UPDATE petitions SET content = '撤回' WHERE content LIKE '{some}%'",
            f"UPDATE petitions SET content = '{some}第{round_}次反映。' WHERE id = {second}",
            f"UPDATE petitions SET content = '{some}第{round_}次反映了。' WHERE id = {third}",
            f"DROP VIEW IF EXISTS {view(self.database, 'duplicates_of_petitions')}",
        )


def _drop(connection: Connection, account: str) -> None:
    if connection.dialect.name == "postgresql":
        if connection.scalar(text("SELECT 1 FROM pg_roles WHERE rolname = :name"), {"name": account}):
            connection.execute(text(f"DROP OWNED BY {account} CASCADE"))
            connection.execute(text(f"DROP ROLE {account}"))
    else:
        connection.execute(text(f"DROP USER IF EXISTS {account}"))


@pytest.fixture(autouse=True)
def signals() -> Iterator[None]:
    """`worker` answers to signals in its own way."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(params=["postgresql", "mariadb", "mysql"])
def office(request: pytest.FixtureRequest, sample: Sample) -> Iterator[Office]:
    """Petitions and the owner's account; nothing of ours yet."""
    database: Database = request.getfixturevalue(f"{request.param}_database")
    fill_database(database.engine, sample)
    Office(database, {}).drop_accounts()
    if request.param == "postgresql":
        Office(database, {}).do(
            "CREATE ROLE petitions_owner", "ALTER TABLE petitions OWNER TO petitions_owner"
        )
    office = Office(database, statements_of(database))
    office.create_accounts()
    office.grant("owner")
    yield office
    office.drop_accounts()


@pytest.fixture
def scanned(office: Office, monkeypatch: pytest.MonkeyPatch) -> Office:
    """Our tables made by the owner, a scan by the scanner, which may drop no indexes."""
    monkeypatch.setattr(full_scan, "_ROWS_WORTH_NEW_INDEXES", 1)
    _upgrade(office)
    for account in ACCOUNTS[1:]:
        office.grant(account)
    ours = OurDatabase(office.url("scanner"))
    dedup = Deduplicator(ours, "petitions", COLUMNS, order="created_at")
    dedup.scan()
    attach(office)
    dedup.scan()  # reservations need one after the triggers
    ours.close()
    return office


def _upgrade(office: Office) -> None:
    ours = OurDatabase(office.url("owner"))
    ours.upgrade()
    ours.close()


def test_every_command_has_an_account() -> None:
    with_url = {name for name, c in load_commands().items() if any("--url" in p.opts for p in c.params)}
    assert with_url - {"init"} == {name for account in ACCOUNTS for name in commands_of(account)}


def test_with_the_grants_every_command_works(scanned: Office, sample: Sample) -> None:
    assert scanned.faults("clerk") == []
    scanned.disturb(sample, 0)
    assert scanned.faults("scanner") == []
    assert scanned.faults("clerk") == []
    assert [fault for name in VIEWS for fault in _read(scanned, view(scanned.database, name))] == []
    assert scanned.faults("owner") == []
    with pytest.raises(DBAPIError), scanned.database.engine.connect() as connection:
        connection.execute(text(f"SELECT * FROM {view(scanned.database, 'pair')}"))


def test_the_reader_sees_nothing_but_the_views(scanned: Office) -> None:
    for table in ("fingerprint", "pair", "watched_table"):
        (fault,) = _read(scanned, view(scanned.database, table))
        assert table in fault
    assert _read(scanned, "petitions") != []


def test_the_scanner_refreshes_the_statistics(scanned: Office, caplog: pytest.LogCaptureFixture) -> None:
    """On PostgreSQL that is for the owner alone, and autovacuum does it."""
    assert list(scanned.work("scanner", ["scan"])) == []
    assert "statistics not refreshed" not in caplog.text
    if scanned.database.name == "postgresql":
        return
    engine = create_engine(scanned.url("scanner"))
    with engine.connect() as connection:
        for table in ("fingerprint", "pair"):
            found = connection.execute(text(f"ANALYZE LOCAL TABLE dedup_{table}")).all()
            assert {row[2:] for row in found} <= {
                ("status", "OK"),
                ("status", "Engine-independent statistics collected"),
            }
    engine.dispose()


def _read(office: Office, name: str) -> list[str]:
    engine = create_engine(office.url("reader"))
    try:
        with engine.connect() as connection:
            connection.execute(text(f"SELECT * FROM {name}")).all()
    except DBAPIError as error:
        return [str(error.orig)]
    finally:
        engine.dispose()
    return []


def attach(office: Office, *, undo: bool = False) -> None:
    ours = OurDatabase(office.url("attacher"))
    dedup = Deduplicator(ours, "petitions")
    (dedup.detach if undo else dedup.attach)()
    ours.close()


def fault_of_new_segments(office: Office) -> str | None:
    """What a scan meets that replaces the segments of the index of sketches."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sketch_index, "is_worth_folding", lambda *_: True)
        return next(office.work("scanner", ["scan", "rebuild"]), None)


def fault_of_first_scan(office: Office) -> str | None:
    """What a scan of a table that was never scanned meets."""
    attach(office, undo=True)
    office.forget_all()
    return next(office.work("scanner", ["scan"]), None)


@pytest.mark.parametrize("account", ["scanner", "attacher", "clerk"])
def test_without_any_one_of_them_a_command_names_it(scanned: Office, sample: Sample, account: str) -> None:
    if account == "attacher":
        assert scanned.faults(account) == []
    needless, unclear = [], []
    for number, (right, thing, user, statement) in enumerate(units(scanned.statements[account])):
        if account == "scanner":
            scanned.disturb(sample, number)
        scanned.do(f"REVOKE {right} ON {thing} FROM {user}")
        fault = next(scanned.work(account), None)
        if account == "scanner" and not fault:
            fault = fault_of_new_segments(scanned) or fault_of_first_scan(scanned)
        scanned.do(statement)
        if account == "scanner":
            assert list(scanned.work(account, ["scan"])) == []
            attach(scanned)
        if not fault:
            needless.append((right, thing))
        name = thing.removeprefix("SEQUENCE ").removeprefix("SCHEMA ").rpartition(".")[2]
        verb = right.partition(" ")[0]
        named = rf"GRANT [A-Z, ]*\b{verb}\b.*\b{name}\b|{name}\w* is missing|a write: .* {name}\b"
        if scanned.database.engine.dialect.name == "mysql" and right == "SELECT":
            # An account that has other rights on a table needs SELECT for a view, too; MySQL names the view.
            named += "|a view .* its reader has no SELECT on one of its tables"
        if fault and not re.search(named, fault):
            unclear.append((right, thing, fault))
    assert needless == []
    assert unclear == []


def test_names_are_quoted_and_accounts_chosen(office: Office) -> None:
    """Odd names in all places where a statement has one."""
    is_postgresql = office.database.name == "postgresql"
    quote = '"' if is_postgresql else "`"
    table, account = f"{quote}odd {quote * 2}'-- table{quote}", f"{quote}an odd-{quote * 2}account{quote}"
    plain = [name[1:-1].replace(quote * 2, quote) for name in (table, account)]
    created = f"CREATE ROLE {account}" if is_postgresql else f"CREATE USER {account}"
    with office.database.engine.begin() as connection:
        connection.exec_driver_sql(f"CREATE TABLE {table} (id int PRIMARY KEY, body text)")
        connection.exec_driver_sql(created)
    try:
        url = json.dumps(office.database.url)
        settings = f"[tables.odd]\ntable = {json.dumps(plain[0])}\n[tables.odd.columns]\nbody = 1\n"
        Path("dedup.toml").write_text(f"[database]\nurl = {url}\n{settings}", encoding="utf-8")
        _upgrade(office)
        script = succeed("sql", "grants", "odd", "--part", "clerk", "--account", f"clerk={plain[1]}").stdout
        office.do(*(statement.replace(":", r"\:") for statement in statements_in(script)))
        engine = create_engine(make_url(office.database.url).set(username=plain[1], password=None))
        if not is_postgresql:  # there the role may not log in
            with engine.connect() as connection:
                assert connection.exec_driver_sql(f"SELECT * FROM {table}").all() == []
        engine.dispose()
    finally:
        with office.database.engine.begin() as connection:
            if is_postgresql:
                connection.exec_driver_sql(f"DROP OWNED BY {account}")
                connection.exec_driver_sql(f"DROP ROLE {account}")
            else:
                connection.exec_driver_sql(f"DROP USER {account}")


def test_the_statements_name_host_schema_and_parts(office: Office) -> None:
    if office.database.name == "postgresql":
        office.do("CREATE SCHEMA records", "CREATE TABLE records.letters (id int PRIMARY KEY, body text)")
        settings = 'schema = "records"\n'
    else:
        office.do("CREATE TABLE letters (id int PRIMARY KEY, body text)")
        settings = ""
    url = json.dumps(office.database.url)
    Path("dedup.toml").write_text(
        f"[database]\nurl = {url}\n[tables.letters]\n{settings}[tables.letters.columns]\nbody = 1\n"
    )
    arguments = ("--part", "scanner", "--account", "scanner=etl@10.0.0.%")
    script = succeed("sql", "grants", "letters", *arguments).stdout
    assert script.startswith("-- The scanner: scan, verify, worker")
    assert "The clerk" not in script
    if office.database.name == "postgresql":
        assert 'GRANT USAGE ON SCHEMA records TO "etl@10.0.0.%";' in script
        assert 'GRANT SELECT ON records.letters TO "etl@10.0.0.%";' in script
    else:
        assert "TO `etl`@`10.0.0.%`;" in script
    assert "unknown table 'nothing'" in str(fail("sql", "grants", "nothing", "--config", str(_other(url))))
    assert "unknown part" in str(fail("sql", "grants", "letters", "--account", "boss=x"))
    assert "write PART=NAME" in str(fail("sql", "grants", "letters", "--account", "scanner"))


def _other(url: str) -> Path:
    path = Path("other.toml")
    path.write_text(f"[database]\nurl = {url}\n[tables.nothing.columns]\nbody = 1\n", encoding="utf-8")
    return path
