"""Confirm, reject and undo by the forms of the pages; who may, and from where."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest
from sqlalchemy import text

from db_dedup import Database, Deduplicator
from db_dedup.app.tokens import new_token
from db_dedup.config import ServerSettings
from tests.thorough import quick_first
from tests.web.conftest import StartWith, running
from tests.web.console.conftest import FORM, Page, Visitor

TABLE = "/console/tables/petitions"
LABEL = f"{TABLE}/label"


@pytest.fixture
def own(copied: Database) -> Iterator[Visitor]:
    """A reader of a service whose labels the test may change."""
    with running(copied) as client:
        yield Visitor(client.port)


def a_group(visitor: Visitor) -> Page:
    """Return the page of a group with pairs that can be labelled."""
    for page in visitor.every(TABLE):
        for link in page.links("/group?row_key"):
            group = visitor.get(link)
            if '<article class="card' in group.text:
                return group
    raise AssertionError("no group with a pair")


def test_confirm_reject_undo(own: Visitor, copied: Database) -> None:
    form = a_group(own).forms()[0]
    labels = Deduplicator(copied, "petitions").labels()

    def stored() -> list[tuple[set[str], bool]]:
        return [({label.key_a, label.key_b}, label.is_duplicate) for label in labels.stored()]

    pair = {form["key_a"], form["key_b"]}
    for action, expected, words in (
        ("confirm", [(pair, True)], "Confirmed."),
        ("reject", [(pair, False)], "Rejected. The worker updates the groups."),
        ("undo", [], "The label is withdrawn. The worker updates the groups."),
        ("undo", [], "No label was withdrawn: there was none"),
    ):
        answer = own.post(LABEL, {**form, "action": action})
        assert answer.status == 303
        assert stored() == expected
        page = own.get(answer.headers["location"])
        assert words in page.text
        assert page.text.count("rejected: no duplicates") == (action == "reject")
    own.post(LABEL, {**form, "action": "reject"})
    Deduplicator(copied, "petitions").scan()
    assert pair not in [{p.key_a, p.key_b} for p in Deduplicator(copied, "petitions").pairs()]


def test_the_part_of_a_page_for_the_script(own: Visitor) -> None:
    form = a_group(own).forms()[0]
    headers = {"Sec-Fetch-Site": "same-origin", "Content-Type": FORM, "X-Part": "1"}
    answer = own.post(LABEL, {**form, "action": "reject"}, headers)
    assert answer.status == 200
    assert answer.text.count("<article") == 1
    assert "<html" not in answer.text
    assert 'data-message="Rejected. The worker updates the groups."' in answer.text
    again = answer.forms()[0]
    assert again == form
    assert own.post(LABEL, {**again, "action": "undo"}, headers).status == 200


def test_a_label_is_of_the_texts_that_were_shown(own: Visitor, copied: Database) -> None:
    form = a_group(own).forms()[0]
    with copied.engine.begin() as connection:
        changed = text("UPDATE petitions SET content = 'another text of this row' WHERE id = :key")
        connection.execute(changed, {"key": form["key_b"]})
    own.post(LABEL, {**form, "action": "reject"})
    page = own.get(f"{TABLE}/pair?key_a={form['key_a']}&key_b={form['key_b']}")
    assert "no label" in page.text


@pytest.mark.parametrize(
    "headers",
    quick_first(
        [
            {"Content-Type": FORM},
            {"Content-Type": FORM, "Sec-Fetch-Site": "cross-site"},
            {"Content-Type": FORM, "Sec-Fetch-Site": "same-site"},
            {"Content-Type": FORM, "Origin": "http://evil.example"},
            {"Content-Type": FORM, "Origin": "null", "Sec-Fetch-Site": "same-origin"},
            {"Content-Type": "text/plain", "Sec-Fetch-Site": "same-origin"},
            {"Content-Type": "application/json", "Sec-Fetch-Site": "same-origin"},
        ]
    ),
)
@pytest.mark.parametrize("path", [LABEL, "/console/login", "/console/logout"])
def test_a_form_from_elsewhere_is_refused(visitor: Visitor, path: str, headers: dict[str, str]) -> None:
    fields = {**a_group(visitor).forms()[0], "action": "reject"}
    assert visitor.post(path, fields, headers).status in (403, 415)


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"form_value": ""}, 403),
        ({"form_value": "0" * 64}, 403),
        ({"key_a": "1\0"}, 400),
        ({"action": "drop"}, 422),
        ({"proof": "x"}, 422),
        ({"proof": "x.zz.00"}, 422),
        ({"proof": "x.00.00"}, 422),
    ],
)
def test_a_form_that_no_page_has_made(
    visitor: Visitor, dedup: Deduplicator, changed: dict[str, str], status: int
) -> None:
    form = {**a_group(visitor).forms()[0], "action": "reject"}
    assert visitor.post(LABEL, form | changed).status == status
    assert not dedup.labels().stored()


def test_nobody_is_sent_to_another_site(own: Visitor) -> None:
    form = a_group(own).forms()[0]
    for back in ("//evil.example", "http://evil.example", "/consoles", "/console/\r\nX: y"):
        answer = own.post(LABEL, {**form, "action": "confirm", "back": back})
        assert answer.headers["location"].startswith(f"{TABLE}/group?row_key=")
        assert "x" not in answer.headers
        path = f"/console/language?to=zh&back={quote(back)}"
        assert own.get(path).headers["location"] == "/console"


def test_log_in_and_out(with_scopes: StartWith) -> None:
    client = with_scopes("read,label")
    visitor = Visitor(client.port)
    for path in ("/console", TABLE, f"{TABLE}/group?row_key=1"):
        page = visitor.get(path)
        assert (page.status, page.headers["location"]) == (303, "/console/login")
    page = visitor.get("/console/login")
    wrong = visitor.post("/console/login", {"form_value": page.form_value, "token": "dedup_x"})
    assert wrong.status == 401
    assert "The token is unknown" in wrong.text
    assert not visitor.cookies
    token = str(client.token)
    right = visitor.post("/console/login", {"form_value": page.form_value, "token": f" {token} "})
    assert (right.status, right.headers["location"]) == (303, "/console")
    cookie = right.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    groups = a_group(visitor)
    assert groups.forms()
    assert token not in groups.text
    # The value of a form is the reader's own.
    assert groups.form_value != page.form_value
    assert visitor.post(LABEL, {**groups.forms()[0], "form_value": page.form_value}).status == 403
    assert visitor.post("/console/logout", {"form_value": groups.form_value}).status == 303
    assert visitor.cookies["db_dedup_token"] in ("", '""')
    assert visitor.get("/console").status == 303


def test_the_forms_of_one_instance_can_be_sent_to_another(
    with_scopes: StartWith, scanned_url: str, tmp_path: Path
) -> None:
    """A balancer before several instances sends each request to any of them."""
    client = with_scopes("read,label")
    same = ServerSettings(tokens=str(tmp_path / "tokens"))
    with closing(Database(scanned_url)) as database, running(database, None, same) as second:
        visitor, other = Visitor(client.port), Visitor(second.port)
        form = {"form_value": visitor.get("/console/login").form_value, "token": str(client.token)}
        assert other.post("/console/login", form).status == 303
        visitor.cookies |= other.cookies
        value = a_group(visitor).form_value
        assert other.post(LABEL, {"form_value": value, "action": "none"}).status == 422
        # A token that is withdrawn ends the forms that were open then, and the secret is no constant.
        (tmp_path / "tokens").write_text(new_token(["read"], "other")[1], encoding="utf-8")
        fresh = Visitor(second.port)
        assert fresh.get("/console/login").form_value != form["form_value"]
        assert fresh.post("/console/login", form).status == 403


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_behind_a_tls_proxy_on_this_machine_the_cookie_is_for_encrypted_connections(
    with_scopes: StartWith, scheme: str
) -> None:
    client = with_scopes("read")
    visitor = Visitor(client.port)
    fields = {"form_value": visitor.get("/console/login").form_value, "token": str(client.token)}
    headers = {"Content-Type": FORM, "Origin": f"{scheme}://127.0.0.1:{client.port}"}
    cookie = visitor.post("/console/login", fields, headers).headers["set-cookie"].lower()
    assert ("; secure" in cookie) is (scheme == "https")


def test_a_cookie_is_no_token_for_programs(with_scopes: StartWith) -> None:
    """Else a page of another site could use it."""
    client = with_scopes("read,check,label")
    visitor = Visitor(client.port, {"db_dedup_token": str(client.token)})
    assert visitor.get("/console").status == 200
    assert visitor.get("/v1/tables").status == 401


def test_cookies_of_other_programs_lock_nobody_out(with_scopes: StartWith) -> None:
    """A browser sends all cookies of a host, whatever the port."""
    client = with_scopes("read")
    for other in ('prefs={"a":1}', "name=\u5f20", "p=a b c", "x", "=", "a[1]=2", 'q="; y'):
        cookies = f"{other}; db_dedup_language=zh; db_dedup_token={client.token}"
        page = Visitor(client.port).get("/console", Cookie=cookies.encode().decode("latin-1"))
        assert page.status == 200, other
        assert '<html lang="zh-CN">' in page.text


def test_who_may_only_read_gets_no_buttons(with_scopes: StartWith) -> None:
    client = with_scopes("read")
    visitor = Visitor(client.port, {"db_dedup_token": str(client.token)})
    page = a_group(visitor)
    assert not page.forms()
    assert "You can read here, not label." in page.text
    keys = re.findall(r"Rows (\d+) and (\d+)", page.text)[0]
    fields = {"form_value": page.form_value, "action": "reject", "key_a": keys[0], "key_b": keys[1]}
    assert visitor.post(LABEL, fields).status == 403
    other = with_scopes("check,label")
    assert Visitor(client.port, {"db_dedup_token": str(other.token)}).get(TABLE).status == 403


def test_a_read_only_service_takes_no_label_and_no_reservation(scanned_url: str, dedup: Deduplicator) -> None:
    pair = next(iter(dedup.pairs()))
    with closing(Database(scanned_url)) as database:
        own = Visitor(0)
        with running(database) as client:
            own.port = client.port
            form = a_group(own).forms()[0]
        with running(database, None, ServerSettings(read_only=True)) as client:
            own.port = client.port
            page = a_group(own)
            assert not page.forms()
            value = own.get("/console/login")  # leads on, as there are no tokens
            assert value.status == 303
            assert own.post(LABEL, {**form, "action": "reject"}).status == 403
            given = [{"key_a": pair.key_a, "key_b": pair.key_b, "is_duplicate": False}]
            answer = client.post("/tables/petitions/labels", {"labels": given})
            assert answer.problem == "read-only"
            record = {"record": {"title": "路灯坏了", "content": "小区门口的路灯坏了三个月。"}}
            assert client.post("/tables/petitions/reservations", record).problem == "read-only"
            assert client.post("/tables/petitions/check", record).status == 200
    assert not dedup.labels().stored()
