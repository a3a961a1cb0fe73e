"""The review console in a real browser: keys, screen reader marks, phone, and what a petition cannot do."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from selenium.webdriver import Chrome, ChromeOptions, ChromeService
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.expected_conditions import text_to_be_present_in_element
from selenium.webdriver.support.ui import WebDriverWait
from sqlalchemy import text

from db_dedup import Database, Deduplicator
from tests.web.conftest import running
from tests.web.console.conftest import Visitor
from tests.web.console.test_labels import a_group

GROUPS = "/console/tables/petitions"
CONTROLS = "button, select, input:not([type=hidden])"
TARGET_PIXELS = 24
"""The least width and height of what a finger has to hit (WCAG 2.2, 2.5.8)."""


@contextmanager
def browser(
    width: int = 1280, height: int = 900, language: str = "en", scripts: bool = True
) -> Iterator[Chrome]:
    """Open Debian's chromium without a window."""
    driver, program = shutil.which("chromedriver"), shutil.which("chromium")
    assert driver, "install chromium-driver"
    assert program, "install chromium"
    options = ChromeOptions()
    options.binary_location = program
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", f"--accept-lang={language}"):
        options.add_argument(argument)
    if not scripts:
        blocked = {"profile.managed_default_content_settings.javascript": 2}
        options.add_experimental_option("prefs", blocked)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    opened = Chrome(options, ChromeService(driver))
    try:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        yield opened
    finally:
        opened.quit()


@pytest.fixture
def own(copied: Database) -> Iterator[tuple[str, Deduplicator]]:
    """The address of a group with pairs, and the table from Python."""
    with running(copied) as client:
        visitor = Visitor(client.port)
        group = a_group(visitor).forms()[0]["back"]
        yield f"http://127.0.0.1:{client.port}{group}", Deduplicator(copied, "petitions")


def wait(page: Chrome, script: str) -> Any:
    return WebDriverWait(page, 30).until(lambda found: found.execute_script(f"return {script}"))


def console_of(page: Chrome) -> list[Any]:
    """Return what the browser complains about: files that are missing, what the policy refuses, errors."""
    untyped: Any = page
    found: list[Any] = untyped.get_log("browser")
    return found


def press(page: Chrome, key: str) -> None:
    page.switch_to.active_element.send_keys(key)


def test_a_group_is_reviewed_by_keyboard_alone(own: tuple[str, Deduplicator]) -> None:
    address, dedup = own
    with browser() as page:
        page.get(address)
        press(page, Keys.TAB)
        assert page.switch_to.active_element.text == "Skip to the content"
        press(page, Keys.ENTER)
        assert wait(page, "document.activeElement.id === 'main'")
        for key, words, expected in (
            ("y", "Confirmed.", [True]),
            ("n", "Rejected. The worker updates the groups.", [False]),
            ("u", "The label is withdrawn. The worker updates the groups.", []),
        ):
            if not page.execute_script("return document.activeElement.matches('.card')"):
                press(page, "j")
            press(page, key)
            assert wait(page, f"document.getElementById('status').textContent === {words!r}")
            assert [label.is_duplicate for label in dedup.labels().stored()] == expected
            # The focus stays at the pair, so that the next key means the same pair.
            assert page.execute_script("return document.activeElement.matches('.card')")
        status = page.find_element(By.ID, "status")
        assert (status.get_attribute("role"), status.get_attribute("aria-live")) == ("status", "polite")
        assert not console_of(page)


def test_one_label_is_sent_at_a_time(own: tuple[str, Deduplicator]) -> None:
    """A second key before the answer, and a key that is held, send nothing."""
    address, dedup = own
    with browser() as page:
        page.get(address)
        page.execute_script(
            "const send = window.fetch; window.sent = 0;"
            "const open = new Promise((resolve) => { window.open_gate = resolve; });"
            "window.fetch = (...given) => { window.sent += 1; return open.then(() => send(...given)); };"
        )
        press(page, "j")
        page.execute_script(
            "document.activeElement.dispatchEvent("
            "new KeyboardEvent('keydown', { key: 'n', repeat: true, bubbles: true }))"
        )
        for key in "yny":
            press(page, key)
        page.find_element(By.CSS_SELECTOR, ".card button.no").click()
        page.execute_script("window.open_gate()")
        assert wait(page, "document.getElementById('status').textContent === 'Confirmed.'")
        assert page.execute_script("return window.sent") == 1
        assert [label.is_duplicate for label in dedup.labels().stored()] == [True]
        press(page, "n")
        assert wait(page, "window.sent === 2")


def test_keys_typed_into_a_field_are_text(own: tuple[str, Deduplicator]) -> None:
    address, dedup = own
    with browser() as page:
        page.get(address.partition("/group")[0])
        field = page.find_element(By.ID, "key")
        field.send_keys("jnyu")
        assert field.get_attribute("value") == "jnyu"
    assert not dedup.labels().stored()


def test_labels_without_scripts(own: tuple[str, Deduplicator]) -> None:
    address, dedup = own
    with browser(scripts=False) as page:
        page.get(address)
        page.find_element(By.CSS_SELECTOR, "button.no").click()
        words = "Rejected. The worker updates the groups."
        WebDriverWait(page, 30).until(text_to_be_present_in_element((By.ID, "status"), words))
    assert [label.is_duplicate for label in dedup.labels().stored()] == [False]


def test_a_form_of_a_former_service_is_refused(own: tuple[str, Deduplicator]) -> None:
    """After a restart the value in an open form is no longer known: the reader is told."""
    address, dedup = own
    with browser() as page:
        page.get(address)
        page.execute_script("document.querySelectorAll('[name=form_value]').forEach((e) => (e.value = 'x'))")
        press(page, "j")
        press(page, "y")
        assert wait(page, "document.getElementById('status').textContent") == (
            "The label was not sent. Load the page again."
        )
    assert not dedup.labels().stored()


def test_what_a_petition_contains_is_not_run(own: tuple[str, Deduplicator]) -> None:
    address, dedup = own
    hostile = "<script>document.title='run'</script><img src=x onerror=\"document.title='run'\">"
    with dedup.database.engine.begin() as connection:
        changed = text("UPDATE petitions SET title = title || :hostile, content = content || :hostile")
        connection.execute(changed, {"hostile": hostile})
    with browser() as page:
        for path in (address, address.partition("/group")[0], address.partition("/group")[0] + "/plots"):
            page.get(path)
            assert page.title != "run"
            assert not page.find_elements(By.TAG_NAME, "img")
        page.get(address)
        assert "<script>" in page.find_element(By.TAG_NAME, "main").text
        # Even a script that had come into the page would not run.
        page.execute_script(
            "const added = document.createElement('div');"
            "added.innerHTML = '<img src=x onerror=\"document.title=1\">';"
            "document.body.append(added)"
        )
        assert wait(page, "document.querySelector('img').complete")
        assert page.title not in ("run", "1")


@pytest.mark.parametrize(
    "path", ["", GROUPS, f"{GROUPS}?kind=edited&since=2020-01-01", f"{GROUPS}/plots", "group"]
)
def test_pages_on_a_phone_and_for_a_screen_reader(own: tuple[str, Deduplicator], path: str) -> None:
    address, _ = own
    server = address.partition("/console")[0]
    with browser(390, 844, "zh-CN") as page:
        page.get(address if path == "group" else f"{server}{path or '/console'}")
        assert page.execute_script("return document.documentElement.scrollWidth") <= 390
        assert page.execute_script("return document.documentElement.lang") == "zh-CN"
        for landmark in ("header.top", "nav[aria-label]", "main", "footer"):
            assert page.find_elements(By.CSS_SELECTOR, landmark), landmark
        assert len(page.find_elements(By.TAG_NAME, "h1")) == 1
        for control in page.find_elements(By.CSS_SELECTOR, f"{CONTROLS}, svg, article"):
            html = control.get_attribute("outerHTML")
            if control.is_displayed():
                assert control.accessible_name, html
        for control in page.find_elements(By.CSS_SELECTOR, f"{CONTROLS}, summary, a:not(.skip)"):
            if control.is_displayed():
                width, height = control.size["width"], control.size["height"]
                assert min(width, height) >= TARGET_PIXELS, control.get_attribute("outerHTML")
        assert not faint(page)
        assert not console_of(page)


def faint(page: Chrome) -> list[str]:
    """Return the texts whose contrast with what is behind them is less than 4.5 to 1."""
    found: list[str] = page.execute_script(
        """
        const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
        const light = (colour) => {
          const [r, g, b] = numbers(colour).map((c) => {
            const share = c / 255;
            return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
          });
          return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const behind = (element) => {
          for (let e = element; e; e = e.parentElement) {
            const colour = getComputedStyle(e).backgroundColor;
            if (numbers(colour)[3] !== 0) return colour;
          }
          return "rgb(255, 255, 255)";
        };
        return Array.from(document.querySelectorAll("body *")).filter((e) => {
          const hasText = Array.from(e.childNodes).some((n) => n.nodeType === 3 && n.data.trim());
          if (!hasText || e.closest("svg") || e.matches("[disabled], [disabled] *")) return false;
          const [one, other] = [light(getComputedStyle(e).color), light(behind(e))];
          return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05) < 4.5;
        }).map((e) => e.outerHTML);
        """
    )
    return found
