"""The pairs that the page of a group shows: what each says, before and after a label."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import select, text, update

from db_dedup import Database, Deduplicator
from tests.web.conftest import running
from tests.web.console.conftest import FORM, Visitor

TABLE = "/console/tables/petitions"
LABEL = f"{TABLE}/label"
PART = {"Sec-Fetch-Site": "same-origin", "Content-Type": FORM, "X-Part": "1"}
SAME = "The same text as the second row: 9001"
CUT = '<span class="cut">'
COPY = "exact duplicates: they take no label"
REJECTED = "rejected: no duplicates"


@pytest.fixture
def own(copied: Database) -> Iterator[Visitor]:
    """A reader of a service whose labels the test may change."""
    with running(copied) as client:
        yield Visitor(client.port)


def edited_pair(dedup: Deduplicator) -> tuple[str, str]:
    """Return the representative of a group of two that are no exact duplicates, and the other row."""
    kinds = {frozenset((pair.key_a, pair.key_b)): pair.kind for pair in dedup.pairs()}
    for group in dedup.groups():
        first = group.representative_key
        others = [key for key in dedup.members(group.group_id) if key != first]
        if len(others) == 1 and kinds.get(frozenset((first, *others))) == "edited":
            return first, others[0]
    raise AssertionError("no group of two")


def with_a_copy(database: Database) -> str:
    """Store a copy of the second row of a group of two as row 9001; return the path of the group's page."""
    dedup = Deduplicator(database, "petitions")
    first, other = edited_pair(dedup)
    with database.engine.begin() as connection:
        row = dict(connection.execute(text(f"SELECT * FROM petitions WHERE id = {other}")).mappings().one())
        names = ", ".join(row)
        values = ", ".join(f":{name}" for name in row)
        connection.execute(text(f"INSERT INTO petitions ({names}) VALUES ({values})"), {**row, "id": 9001})
    dedup.scan()
    return f"{TABLE}/group?row_key={first}"


def test_a_card_with_exact_duplicates_shows_its_label(own: Visitor, copied: Database) -> None:
    path = with_a_copy(copied)
    page = own.get(path)
    assert SAME in page.text
    (form,) = page.forms()
    own.post(LABEL, {**form, "action": "reject"})
    page = own.get(path)
    assert page.text.count(REJECTED) == 1
    assert " disabled" not in page.text
    own.post(LABEL, {**page.forms()[0], "action": "undo"})
    assert not Deduplicator(copied, "petitions").labels().stored()


def test_a_page_of_exact_duplicates_shows_their_text_once(own: Visitor, copied: Database) -> None:
    statement = text(
        "INSERT INTO petitions (id, title, content, created_at) SELECT :key, title, "
        "'新建的图书馆里没有供老年人使用的放大镜和座椅，希望尽快增设。', created_at "
        "FROM petitions WHERE id = 1"
    )
    with copied.engine.begin() as connection:
        connection.execute(statement, [{"key": key} for key in (9001, 9002, 9003)])
    Deduplicator(copied, "petitions").scan()
    page = own.get(f"{TABLE}/group?row_key=9003")
    assert page.text.count('class="card') == 1
    assert page.text.count("放大镜") == 2
    assert COPY in page.text
    assert page.forms() == []


def test_a_label_by_the_script_keeps_the_card_as_it_was(own: Visitor, copied: Database) -> None:
    path = with_a_copy(copied)
    with copied.engine.begin() as connection:
        # So long an addition is shown in part, unless the reader wants the whole texts.
        longer = text("UPDATE petitions SET content = content || :more WHERE id IN (9001, :key)")
        more = "".join(f"第{number}句。" for number in range(2_000))
        connection.execute(longer, {"more": more, "key": own.get(path).forms()[0]["key_b"]})
    for query, is_full in (("", False), ("&full=1", True)):
        page = own.get(path + query)
        answer = own.post(LABEL, {**page.forms()[0], "action": "confirm"}, PART)
        for shown in (page, answer):
            assert SAME in shown.text
            assert (CUT not in shown.text) is is_full


def test_a_label_is_withdrawn_from_the_texts_that_were_shown(own: Visitor, copied: Database) -> None:
    labels = Deduplicator(copied, "petitions").labels()
    first, other = edited_pair(Deduplicator(copied, "petitions"))
    path = f"{TABLE}/group?row_key={first}"
    own.post(LABEL, {**own.get(path).forms()[0], "action": "reject"})
    (form,) = own.get(path).forms()
    with copied.engine.begin() as connection:
        changed = text("UPDATE petitions SET content = content || :more WHERE id = :key")
        connection.execute(changed, {"more": "另外还有一件事。", "key": other})
    back = own.post(LABEL, {**form, "action": "undo"}).headers["location"]
    assert "The label is withdrawn." in own.get(back).text
    with copied.engine.begin() as connection:
        changed = text("UPDATE petitions SET content = replace(content, :more, '') WHERE id = :key")
        connection.execute(changed, {"more": "另外还有一件事。", "key": other})
    assert not labels.stored()


def test_two_rows_that_are_the_nearest_of_each_other_have_one_card(own: Visitor, copied: Database) -> None:
    dedup = Deduplicator(copied, "petitions")
    row, pair = copied.tables.fingerprint, copied.tables.pair
    pairs = [(p.key_a, p.key_b) for p in dedup.pairs() if p.kind != "copy"]
    first, two = next(
        (group.representative_key, keys)
        for group in dedup.groups()
        for keys in pairs
        if group.size <= 6
        and group.representative_key not in keys
        and {*keys} <= {*dedup.members(group.group_id)}
    )
    with copied.engine.begin() as connection:
        of_key = {key: id_ for id_, key in connection.execute(select(row.c.id, row.c.row_key))}
        connection.execute(update(row).where(row.c.row_key == first).values(is_loose=True))
        nearest = pair.c.id_a == of_key[two[0]], pair.c.id_b == of_key[two[1]]
        connection.execute(update(pair).where(*nearest).values(similarity=1.0, distance=0))
    path = f"{TABLE}/group?row_key={first}"
    (form,) = [form for form in own.get(path).forms() if {form["key_a"], form["key_b"]} == {*two}]
    own.post(LABEL, {**form, "action": "reject"})
    assert own.get(path).text.count(REJECTED) == 1
