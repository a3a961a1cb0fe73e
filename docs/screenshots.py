"""Write the screenshots of the review console into docs/images/: `python docs/screenshots.py`.

It makes the demo's petitions, serves them and looks at the pages in Debian's chromium (packages chromium,
chromium-driver and a Chinese font such as fonts-wqy-microhei). Only made-up petitions are shown.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from selenium.webdriver import Chrome, ChromeOptions, ChromeService
from selenium.webdriver.common.by import By

IMAGES: Final = Path(__file__).parent / "images"
DESKTOP: Final = (1280, 900)
PHONE: Final = (390, 844)
_PROGRAM: Final = "from db_dedup.cli import main; main()"
_GROUPS: Final = "/console/tables/petitions?order=loose"
_PLOTS: Final = "/console/tables/petitions/plots"


def main(folder: Path = IMAGES) -> None:
    """Take them all."""
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name, served(Path(name)) as address:
        with browser(*DESKTOP) as page:
            page.get(address + _GROUPS)
            page.save_screenshot(str(folder / "console-groups.png"))
            page.find_element(By.CSS_SELECTOR, ".groups a").click()
            group = page.current_url
            page.execute_script("document.querySelector('.why').open = true")
            page.save_screenshot(str(folder / "console-group.png"))
            page.get(address + _PLOTS)
            page.save_screenshot(str(folder / "console-plots.png"))
        with browser(*PHONE, language="zh-CN") as page:
            page.get(group)
            page.save_screenshot(str(folder / "console-phone.png"))


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve the demo's petitions from a folder; yields the address."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DB_DEDUP")}
    command = [sys.executable, "-c", _PROGRAM]
    demo = [*command, "demo", "--folder", str(folder / "demo"), "--rows", "2000"]
    subprocess.run(demo, check=True, capture_output=True, env=environment)  # noqa: S603 - our own command
    serve = subprocess.Popen(  # noqa: S603 - our own command
        [*command, "serve", "--port", "0"],
        cwd=folder / "demo",
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    with serve:
        try:
            line = serve.stderr.readline() if serve.stderr else ""
            yield re.findall(r"http://[\w.:]+", line)[0]
        finally:
            serve.terminate()


@contextmanager
def browser(width: int, height: int, language: str = "en") -> Iterator[Chrome]:
    """Open a browser with a window of this size, in CSS pixels."""
    options = ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    options.add_argument(f"--accept-lang={language}")
    opened = Chrome(options, ChromeService("/usr/bin/chromedriver"))
    try:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        yield opened
    finally:
        opened.quit()


if __name__ == "__main__":
    main()
