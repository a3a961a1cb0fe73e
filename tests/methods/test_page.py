"""docs/reference/methods.md names what there is, and its example runs."""

import re
from pathlib import Path

import pytest

from db_dedup import methods

PAGE = (Path(__file__).parents[2] / "docs/reference/methods.md").read_text(encoding="utf-8")
REGISTRIES = (methods.SEGMENTERS, methods.HASHES, methods.FEATURES, methods.METHODS)


def ends_of_ranges(name: str) -> bool:
    return not re.fullmatch(r"(chars|shingles):\d", name) or name in {
        "chars:1",
        "chars:8",
        "shingles:2",
        "shingles:5",
    }


def test_every_method_is_named_with_its_papers() -> None:
    rows = [line.split("|") for line in PAGE.splitlines() if line.startswith("| `")]
    papers = {name: row[2].strip() for row in rows for name in re.findall("`(.+?)`", row[1])}
    for registry in REGISTRIES:
        for name, entry in registry.items():
            if ends_of_ranges(name):
                assert name in papers
                if not name.startswith("ik-"):  # P1 has only one of the two
                    assert papers[name] == ", ".join(entry.papers), name


def test_the_example_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.+?)```", PAGE, re.DOTALL)
    exec(code, {})  # noqa: S102 - our own page
    assert capsys.readouterr().out == re.findall(r"^# (.+\n)", code, re.MULTILINE)[-1]
