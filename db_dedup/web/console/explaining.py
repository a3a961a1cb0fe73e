"""What `explain` says of two rows, in the language of the reader."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from db_dedup.flow.candidates.generators import SIMHASH
from db_dedup.jobs.explain.applied_rule import EXCLUDED, NUMBERS, REJECTED, WITHIN
from db_dedup.present.explanation_words import explained_differences
from db_dedup.present.visible import visible
from db_dedup.records import Explanation, RuleTest
from db_dedup.web.console.words import Words

_WITHOUT_NUMBER: Final = (EXCLUDED, NUMBERS, REJECTED, WITHIN)
_MOST_NAMES: Final = 10


class TestLine(NamedTuple):
    """One test of the rule: whether it is passed, its name, and what was measured."""

    passed: bool
    name: str
    said: str


class ShownExplanation(NamedTuple):
    """An explanation: sentences, and the tests of the rule."""

    decision: str
    tests: list[TestLine]
    lines: list[str]


def explained(found: Explanation, words: Words) -> ShownExplanation:
    """Return an explanation to show."""
    tests = [
        TestLine(one.passed, words.name("generator", one.name), _generator(one, words))
        for one in found.generators
    ]
    tests += [TestLine(one.passed, words.name("measure", one.name), _test(one, words)) for one in found.tests]
    return ShownExplanation(words(f"decision.{found.decision.value}"), tests, list(_lines(found, words)))


def _kind_line(kind: str | None, contained: str | None, other_place: bool | None, words: Words) -> str:
    """Return the kind of a pair in words; "" if it is not known."""
    if kind is None:
        return ""
    said = words.name("kind_meaning", kind)
    if contained is not None:
        said = words("group.contained", key=contained)
    return words("group.with_other_place", kind=said) if other_place else said


def _lines(found: Explanation, words: Words) -> Iterator[str]:
    if said := _kind_line(found.kind, found.contained_key, found.other_place, words):
        yield said
    shown = words("list.separator").join(
        f"{words.name('measure', name)} {value:.3f}" for name, value in found.similarities.items()
    )
    yield words("explain.similarities", shown=shown)
    for sort, names in explained_differences(found).items():
        for row, only in ((found.row_a, names.only_a), (found.row_b, names.only_b)):
            if only:
                listed = words("list.separator").join(map(visible, only[:_MOST_NAMES]))
                yield words(f"explain.only_{sort}", key=row.row_key, names=listed)
    yield words("explain.agrees" if found.agrees else "explain.differs")
    yield from _of_rows(found, words)


def _of_rows(found: Explanation, words: Words) -> Iterator[str]:
    for row in (found.row_a, found.row_b):
        if row.state != "unchanged":
            yield words(f"explain.{row.state}", key=row.row_key)
        if row.fingerprint is None:
            yield words("explain.too_little", key=row.row_key, features=row.features)
    for column in found.columns:
        for row, frames in ((found.row_a, column.frames_a), (found.row_b, column.frames_b)):
            if frames:
                parts = " ".join(f"[{visible(part)}]" for part in frames)
                yield words("explain.frames", column=column.name, key=row.row_key, parts=parts)


def _generator(test: RuleTest, words: Words) -> str:
    if test.value is None:
        return words("explain.no_fingerprint")
    values = {"value": int(test.value), "limit": int(test.limit or 0)}
    if test.name == SIMHASH:
        return words("explain.radius", **values)
    return words("explain.in_common_of" if test.limit and test.limit > 1 else "explain.in_common", **values)


def _test(test: RuleTest, words: Words) -> str:
    if test.value is not None:
        return words("explain.measured", value=f"{test.value:.3f}", limit=f"{test.limit or 0:g}")
    if test.name in _WITHOUT_NUMBER:
        return words(f"explain.{test.name}_{'passed' if test.passed else 'failed'}")
    return ""
