"""The pages for readers with a keyboard alone or a screen reader: axe-core's rules, and more."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from itertools import pairwise
from typing import Any

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.expected_conditions import presence_of_element_located
from selenium.webdriver.support.ui import WebDriverWait

from db_dedup import Database
from tests.web.conftest import StartWith, running
from tests.web.console.conftest import Visitor
from tests.web.console.test_browser import GROUPS, browser, press
from tests.web.console.test_labels import a_group

NARROWEST = 320
"""CSS pixels: a desktop window at a zoom of 400 % (WCAG 2.2, 1.4.10)."""
PAGES = (
    "/console",
    GROUPS,
    f"{GROUPS}?kind=edited&since=2020-01-01",
    f"{GROUPS}/plots",
    "group",
    "pair",
    "/console/tables/no",
)


@pytest.fixture
def addresses(copied: Database) -> Iterator[dict[str, str]]:
    """Name of a page -> its address."""
    with running(copied) as client:
        form = a_group(Visitor(client.port)).forms()[0]
        paths = {path: path for path in PAGES}
        paths["group"] = form["back"]
        paths["pair"] = f"{GROUPS}/pair?key_a={form['key_a']}&key_b={form['key_b']}"
        yield {name: f"http://127.0.0.1:{client.port}{path}" for name, path in paths.items()}


def faults(page: Chrome) -> list[str]:
    """Return what axe-core finds on a page with all of its folded parts open."""
    page.execute_script("document.querySelectorAll('details').forEach((part) => (part.open = true))")
    page.execute_script(files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
    untyped: Any = page
    found = untyped.execute_async_script("axe.run().then(arguments[arguments.length - 1])")
    assert len(found["passes"]) > 10
    return [f"{one['id']}: {node['html']}" for one in found["violations"] for node in one["nodes"]]


@pytest.mark.parametrize("width", [1280, NARROWEST])
def test_no_rule_of_axe_is_broken(addresses: dict[str, str], width: int) -> None:
    for language in ("en", "zh-CN"):
        with browser(width, language=language) as page:
            for name, address in addresses.items():
                page.get(address)
                assert faults(page) == [], (name, language)
                assert page.execute_script("return document.documentElement.scrollWidth") <= width, name


def test_axe_finds_a_fault(addresses: dict[str, str]) -> None:
    """Else the test above could not fail."""
    with browser() as page:
        page.get(addresses[GROUPS])
        page.execute_script("document.querySelector('label[for=key]').remove()")
        page.execute_script("document.documentElement.removeAttribute('lang')")
        found = {fault.partition(":")[0] for fault in faults(page)}
        assert {"label", "html-has-lang"} <= found


def test_the_page_that_asks_for_a_token(with_scopes: StartWith) -> None:
    client = with_scopes("read")
    with browser() as page:
        page.get(f"http://127.0.0.1:{client.port}/console/login")
        assert faults(page) == []
        assert page.switch_to.active_element.get_attribute("id") == "token"
        page.switch_to.active_element.send_keys("wrong" + Keys.ENTER)
        is_there = presence_of_element_located((By.CSS_SELECTOR, "[role=alert]"))
        alert = WebDriverWait(page, 30).until(is_there)
        assert page.find_element(By.ID, "token").get_attribute("aria-describedby") == alert.get_attribute(
            "id"
        )
        assert faults(page) == []


HEADINGS = "return Array.from(document.querySelectorAll('h1, h2, h3, h4, h5'), (e) => Number(e.tagName[1]))"
FOCUSED = """
const element = document.activeElement, style = getComputedStyle(element);
const box = element.getBoundingClientRect();
const all = Array.from(document.querySelectorAll('*'));
return element === document.body ? null : {
  place: all.indexOf(element), html: element.outerHTML.slice(0, 200),
  isSeen: box.width > 0 && box.left >= 0 && box.right <= innerWidth
    && box.top < innerHeight && box.bottom > 0,
  hasRing: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2,
};
"""


def test_the_focus_goes_through_the_page_and_is_seen(addresses: dict[str, str]) -> None:
    with browser() as page:
        for name in (GROUPS, "group", f"{GROUPS}/plots"):
            page.get(addresses[name])
            wanted = page.execute_script(
                "return Array.from(document.querySelectorAll('a[href], button, select, summary, input'))"
                ".filter((e) => !e.disabled && e.type !== 'hidden' && e.checkVisibility()).length"
            )
            places: list[int] = []
            for _ in range(wanted + 30):  # a field for a date has several parts
                press(page, Keys.TAB)
                focused = page.execute_script(FOCUSED)
                if focused is None or (places and focused["place"] == places[0]):
                    break
                assert focused["isSeen"], focused
                assert focused["hasRing"], focused
                if focused["place"] not in places[-1:]:
                    places.append(focused["place"])
            assert places == sorted(places), name
            assert len(places) == wanted, name


def test_what_a_screen_reader_is_told(addresses: dict[str, str]) -> None:
    with browser() as page:
        page.get(addresses["group"])
        page.execute_script("document.querySelector('.why').open = true")
        levels = page.execute_script(HEADINGS)
        untyped: Any = page
        nodes = untyped.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    told = [(n["role"]["value"], n.get("name", {}).get("value", "")) for n in nodes if not n["ignored"]]
    roles = [role for role, _ in told]
    for role in ("banner", "main", "contentinfo", "status"):
        assert roles.count(role) == 1, role
    navigations = [name for role, name in told if role == "navigation"]
    assert sorted(navigations) == ["Main", "Pages"]
    assert any(role == "article" and name.startswith("Rows ") for role, name in told)
    # What differs is not shown by colour alone.
    assert {"deletion", "insertion"} & set(roles)
    buttons = [name for role, name in told if role == "button"]
    assert {"Confirm y", "Reject n", "Undo u"} <= set(buttons)
    assert ("columnheader", "Result") in told
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
