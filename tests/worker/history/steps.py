"""What may happen in a history, drawn by lot.

Every history draws from the ordinary steps of two writers and two workers. Most draw one to three further
kinds of steps beside them, so that over many histories each kind meets every other, and none has all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from hypothesis import strategies as st

from db_dedup import Text, Value
from tests.worker.keys import ROWS

KEYS = range(ROWS)
WORDS = [*(f"word{i}" for i in range(6)), "岳麓小区", "雨花小区"]
BASES = tuple(
    sentence.split()
    for sentence in (
        "lamp dark street months nobody repairs light children school",
        "water stops every night estate manager answers nothing money",
        "noise building site until morning old people cannot sleep",
    )
)

OPENING = "to the office of the town about the matter of the day"
CLOSING = "with kind regards from all of your citizens"
"""A frame around some bodies."""

RECIPES: Sequence[Mapping[str, Any]] = (
    {"threshold": 0.3, "similarity": "char_jaccard", "sketches": True},
    {"radius": 7, "sketches": False},
    {"columns": {"body": Text(), "region": Value()}},
    {"within": "region"},
    {"preset": "strict", "similarity": None, "threshold": None, "radius": None, "sketches": None},
    {"where": "received IS NOT NULL"},
    {"frames": False},
    {"order": None, "columns": {"body": Text(weight=2)}},
    {"similarity": "word_jaccard", "threshold": 0.3, "exclude_kinds": ("partial", "other_place")},
)
"""Settings that a history may switch to, in place of those that the table had at first."""


class Step(NamedTuple):
    """One thing that happens: what, who does it, and with what."""

    what: str
    who: int
    key: int = 0
    value: Any = None


class Interruption(NamedTuple):
    """A step that is played right before a statement of a worker or a scan.

    Attributes:
        at: number of the statement, from 1.
    """

    at: int
    step: Step


class Migration(NamedTuple):
    """A change of the host's table.

    Attributes:
        change: "add" (or drop) a column, "widen" one, "rename" one and back.
        through: "engine" or "connection", which the host hands over.
        end: "done", or where it breaks off: by an exception that is "raised", or "killed" with its process.
        row: written in the same block, while no trigger sees it.
    """

    change: str
    through: str
    end: str
    row: tuple[str | None, str, int | None]


def _body(base: int, edits: list[tuple[int, str]], form: str) -> str | None:
    words = list(BASES[base])
    for place, word in edits:
        words[place] = word
    body: str | None = " ".join(words)
    match form:
        case "nothing":
            body = None
        case "short":
            return " ".join(words[:2])
        case "longer":
            return " ".join([*words, *BASES[(base + 1) % len(BASES)]])
        case "turned":
            body = " ".join(reversed(words))
        case "loud":
            body = " ".join(words).upper() + "  "
        case "framed":
            body = f"{OPENING} {body} {CLOSING}"
        case "framed, short":
            body = f"{OPENING} {' '.join(words[:2])} {CLOSING}"
    return body


_edit = st.tuples(st.integers(0, 8), st.sampled_from(WORDS))
edits = st.lists(_edit, max_size=1) | st.lists(_edit, max_size=3)
_FRAMED = ("framed", "framed", "framed", "framed, short")
forms = st.sampled_from(["plain", "plain", "plain", "turned", "longer", "loud", "short", "nothing", *_FRAMED])
bodies = st.builds(_body, st.sampled_from([0, 0, 1, 2]), edits, forms)
regions = st.sampled_from(["A", "A", "B", "C"])
moments = st.sampled_from([None, 1, 2, 3])
rows = st.tuples(bodies, regions, moments)

_who = st.integers(0, 1)
_key = st.sampled_from(KEYS)


def _step(what: str, value: st.SearchStrategy[Any] = st.none()) -> st.SearchStrategy[Step]:  # noqa: B008
    return st.builds(Step, st.just(what), _who, _key, value)


def _interrupted(last: int, *steps: st.SearchStrategy[Step]) -> st.SearchStrategy[Interruption]:
    return st.builds(Interruption, st.integers(1, last), st.one_of(*steps))


_LABEL, _BATCH, _SCAN = 20, 30, 130
"""About so many statements a label, a batch and a scan have at most."""

_commit = _step("commit")
_said = st.sampled_from([False, False, True, None])
_saying = st.tuples(_key, _said, st.none())
_say = _step("say", _saying)
_breaks = _step("raise"), _step("kill")
_level = st.tuples(st.sampled_from(["REPEATABLE READ", "SERIALIZABLE"]), st.booleans())

# What is there twice is drawn twice as often.
_ordinary = [
    *(_step("insert", rows), _step("insert", rows)),
    _step("load", st.tuples(rows, st.integers(2, 5))),
    *(_step("body", bodies), _step("body", bodies)),
    _step("back"),
    _step("region", regions),
    _step("received", moments),
    _step("move", _key),
    _step("delete"),
    *(_step("commit"), _step("commit")),
    _step("rollback"),
    *(_step("work", st.none() | _interrupted(_BATCH, _commit)) for _ in range(2)),
]

_migration = st.builds(
    Migration,
    st.sampled_from(["add", "widen", "rename"]),
    st.sampled_from(["connection", "engine"]),
    st.sampled_from(["done", "done", "raised", "killed"]),
    rows,
)
_switch = st.tuples(
    st.integers(0, len(RECIPES) - 1),
    st.sampled_from([True, True, True, True, False]),
    st.none() | _interrupted(_SCAN, *_breaks, _commit, _say),
)
"""Which of the recipes, whether the writers end their transactions first, and what comes in between."""

_plain_switch = st.tuples(st.integers(0, len(RECIPES) - 1), st.just(True), st.none())
_switched_saying = st.tuples(_key, _said, _interrupted(_LABEL, _step("switch", _plain_switch)))

_often: Mapping[str, Sequence[st.SearchStrategy[Step]]] = {
    "label": [_step("say", _saying) for _ in range(3)],
    "level": [_step("begin", _level) for _ in range(3)],
    "break": [_step("work", _interrupted(_BATCH, *_breaks, _say)) for _ in range(3)],
}
"""What some histories have among their ordinary steps."""

_rare: Mapping[str, st.SearchStrategy[Step]] = {
    "clear": _step("clear"),
    "scan": _step("scan", st.tuples(st.booleans(), st.none() | _interrupted(_SCAN, *_breaks, _commit))),
    "switch": _step("switch", _switch),
    "switched label": _step("say", _switched_saying),
    "migration": _step("migrate", _migration),
    "restart": _step("restart"),
}
"""What some histories have once or twice."""

_kinds = st.lists(st.sampled_from([*_often, *_rare]), max_size=3, unique=True)


@st.composite
def histories(draw: st.DrawFn) -> list[Step]:
    """Some rows to begin with, then steps."""
    first = draw(st.lists(rows, min_size=3, max_size=len(KEYS)))
    kinds = draw(_kinds)
    often = [step for kind in kinds for step in _often.get(kind, ())]
    many = draw(st.integers(0, 25))
    later = draw(st.lists(st.one_of(*_ordinary, *often), min_size=many, max_size=many))
    for kind in [kind for kind in kinds if kind in _rare]:
        for step in draw(st.lists(_rare[kind], min_size=1, max_size=2)):
            later.insert(draw(st.integers(0, len(later))), step)
    return [*(Step("insert", 0, key, row) for key, row in enumerate(first)), Step("commit", 0), *later]
