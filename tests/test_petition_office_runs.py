"""The example application as `make example` starts it: its worker, its end, and its pages in a browser."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from tests.servers import Database
from tests.web.console.test_browser import CONTROLS, TARGET_PIXELS, browser, console_of, faint

ROOT = Path(__file__).parent.parent
SECONDS = 120
TITLE = "关于停水的投诉"
TEXT = "小区已经连续三天停水，物业没有说明原因，老人和孩子生活很不方便，请尽快处理并答复。"
OUTSIDE = r"""(?:src|href|action)="(?:https?:)?//"""

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="there is no make on this machine")


@contextmanager
def running(folder: Path, *arguments: str, url: str | None = None) -> Iterator[tuple[str, list[str]]]:
    """`make example` with this Python; (its address, what it says before); it ends by SIGTERM."""
    environment = {name: value for name, value in os.environ.items() if name != "DB_DEDUP_URL"}
    if url is not None:
        environment["DB_DEDUP_URL"] = url
    command = (
        "make",
        "--old-file=.venv/with-web,postgresql",  # the packages are here: nothing is to be installed
        "example",
        f"BIN={Path(sys.executable).parent}",
        "PORT=0",
        f"ARGS=--folder {folder} {' '.join(arguments)}",
    )
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            said = []
            while not (found := re.search(r"http://127\.0\.0\.1:\d+", (line := next_line(process)))):
                said.append(line)
            yield found[0], said
            process.send_signal(signal.SIGTERM)
            process.wait(SECONDS)
        finally:
            assert not ended_group(process.pid)


def next_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, "it has ended"
    return line


def ended_group(group: int) -> bool:
    """End what is left of the processes of a group; whether any was left after some seconds."""
    for _ in range(100):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return False
        time.sleep(0.1)
    os.killpg(group, signal.SIGKILL)
    return True


def fetched(address: str) -> str:
    with urllib.request.urlopen(address, timeout=SECONDS) as page:  # noqa: S310 - our own address
        return str(page.read().decode())


def file_by_keyboard(page: Chrome, address: str, content: str) -> None:
    """Fill in the form without a mouse."""
    page.get(f"{address}/file")
    page.find_element(By.ID, "title").send_keys(TITLE, Keys.TAB)
    page.switch_to.active_element.send_keys(content, Keys.TAB)
    page.switch_to.active_element.send_keys("王芳", Keys.TAB)
    page.switch_to.active_element.send_keys("13800000001", Keys.TAB, Keys.TAB, Keys.TAB)
    assert page.switch_to.active_element.tag_name == "button"
    page.switch_to.active_element.send_keys(Keys.ENTER)


def reached(page: Chrome, pattern: str) -> str:
    """Wait for a page; return its number."""
    WebDriverWait(page, 30).until(lambda found: re.search(pattern, found.current_url))
    found = re.search(r"(\d+)\?", page.current_url)
    return found[1] if found else ""


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_it_starts_keeps_what_is_filed_and_ends(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = None
    if kind == "postgresql":
        database: Database = request.getfixturevalue("postgresql_database")
        url = database.url
    with running(tmp_path, url=url) as (address, said), browser() as page:
        assert any("400 made-up petitions are stored" in line for line in said)
        file_by_keyboard(page, address, TEXT)
        first = reached(page, "/petitions/")
        file_by_keyboard(page, address, TEXT.replace("三天", "五天"))
        WebDriverWait(page, 30).until(lambda found: found.find_elements(By.TAG_NAME, "ins"))
        button = page.find_element(By.CSS_SELECTOR, "button[name=link]")
        assert button.get_attribute("value") == first
        button.send_keys(Keys.ENTER)
        second = reached(page, "/petitions/")
        # The worker finds the group without being asked.
        for _ in range(SECONDS):
            page.get(f"{address}/petitions/{second}")
            if page.find_elements(By.CSS_SELECTOR, "section.first"):
                break
            time.sleep(1)
        assert (
            page.find_element(By.CSS_SELECTOR, ".first a").get_attribute("href")
            == f"{address}/petitions/{first}"
        )
    with running(tmp_path, url=url) as (address, said):
        assert not any("petitions" in line for line in said[1:])
        assert TITLE in fetched(f"{address}/petitions/{second}")
    assert (tmp_path / "office.db").exists() == (kind == "sqlite")


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with running(tmp_path) as (address, _):
        port = address.rpartition(":")[2]
        command = [
            sys.executable,
            "examples/petition_office/start.py",
            "--port",
            port,
            "--folder",
            str(tmp_path),
        ]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert done.stderr.startswith(f"port {port}: ")
        assert done.stderr.count("\n") == 1


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One office for the tests that look at pages."""
    with running(tmp_path_factory.mktemp("office")) as (found, _):
        with browser() as page:
            file_by_keyboard(page, found, TEXT)
            reached(page, "/petitions/")
        yield found


@pytest.mark.parametrize("width", [320, 1280])
def test_pages_fit_and_can_be_read(address: str, width: int) -> None:
    with browser(width, 800) as page:
        numbers = re.findall(r'href="(/petitions/\d+)"', fetched(f"{address}/?show=joint"))
        for path in ("/", "/counts?lang=en", "/file", numbers[0], numbers[-1], "similar"):
            if path == "similar":
                show_similar(page, address)
            else:
                page.get(f"{address}{path}")
            check_page(page, path)
            if path != "similar":  # which is answered with 409
                assert not console_of(page)


def show_similar(page: Chrome, address: str) -> None:
    """Send a petition that is similar to the one that the fixture has filed."""
    file_by_keyboard(page, address, f"{TEXT}谢谢。")
    WebDriverWait(page, 30).until(lambda found: found.find_elements(By.CSS_SELECTOR, "article ins"))


def check_page(page: Chrome, path: str) -> None:
    fits = "return document.documentElement.scrollWidth <= window.innerWidth"
    assert page.execute_script(fits), path
    assert not re.search(OUTSIDE, page.page_source), path
    assert len(page.find_elements(By.TAG_NAME, "h1")) == 1
    assert faint(page) == [], path
    for control in page.find_elements(By.CSS_SELECTOR, f"{CONTROLS}, textarea, a:not(.skip)"):
        size = control.rect
        assert min(size["width"], size["height"]) >= TARGET_PIXELS, (path, control.text, size)
        assert control.accessible_name, (path, control.get_attribute("outerHTML"))


def test_keyboard_and_screen_reader(address: str) -> None:
    with browser() as page:
        page.get(f"{address}/file?lang=en")
        page.switch_to.active_element.send_keys(Keys.TAB)
        assert page.switch_to.active_element.text == "Skip to the content"
        page.switch_to.active_element.send_keys(Keys.ENTER)
        assert page.execute_script("return document.activeElement.id") == "main"
        assert page.find_element(By.ID, "follows").accessible_name == "Link to number (optional)"
        # The browser would stop an empty form: the server answers what comes around it.
        page.execute_script("document.querySelector('main form').noValidate = true")
        page.find_element(By.CSS_SELECTOR, "main button").send_keys(Keys.ENTER)
        alert = WebDriverWait(page, 30).until(
            lambda found: found.find_element(By.CSS_SELECTOR, "[role=alert]")
        )
        alert.find_element(By.TAG_NAME, "a").send_keys(Keys.ENTER)
        assert page.switch_to.active_element.get_attribute("id") == "title"
        assert page.switch_to.active_element.get_attribute("aria-invalid") == "true"
        show_similar(page, address)
        mark = page.find_element(By.CSS_SELECTOR, "article ins")
        assert mark.get_attribute("textContent") == "[only in the new one: 谢谢。]"
