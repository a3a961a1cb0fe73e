"""Texts in letters: what the default preset finds among English texts, with long grams and without.

Real texts have no labels. A found pair counts as wrong here if the two texts share under a twentieth of the
shorter one's runs of five words. Of two short texts this can also be one text with a few words edited.
"""

import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.cpu import median_cpu_seconds
from benchmarks.datasets import read_english
from benchmarks.materials import edited
from db_dedup.config import WatchedTable, watched_table
from db_dedup.flow.compare.rule import Rule
from db_dedup.flow.matching.match import Matches, match_table
from db_dedup.flow.matching.measured_table import MeasuredTable, find_measured
from db_dedup.flow.pipeline import Fingerprinter
from db_dedup.flow.text.normalise import normalise_batch
from db_dedup.progress import NullProgress
from db_dedup.records import SourceRow

_SETTINGS: Final = {"3-grams": {"long_grams": False}, "long grams, too": {"long_grams": True}}
_WRONG_BELOW: Final = 0.05
_WORDS_A_RUN: Final = 5
_LENGTHS: Final = (40, 80, 150, 300, 1000, 5000)
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
_MOST_PAIRS: Final = 20_000_000
_MOST_COUNTED: Final = 5_000
"""Candidates are counted among so many texts: to measure the 16 million of the tweets takes many minutes."""


@dataclass(frozen=True)
class Sizes:
    """At most so many texts of a set; so many changed texts of a kind and length."""

    rows: int = 1_000_000
    changed: int = 300


SMALL = Sizes(rows=300, changed=10)


def run(data: Path | None, sizes: Sizes = Sizes()) -> None:
    """Print what is found among real texts, and which planted changes are found."""
    assert data is not None
    sets = {name: texts[: sizes.rows] for name, texts in read_english(data).items()}
    print(
        f"wrong: pairs that share under {_WRONG_BELOW:.0%} of their runs of {_WORDS_A_RUN} words; long: "
        f"pairs of two texts from {_LENGTHS[1]} characters on; CPU seconds: steps 2 to 7 in memory, medians "
        "of 3"
    )
    print(
        f"{'':<26} {'':<16} {'rows':>6} {'candidates':>10} {'pairs':>6} {'wrong':>6} {'long':>6} "
        f"{'wrong':>6} {'largest group':>13} {'CPU s':>6}"
    )
    for name, texts in sets.items():
        for setting, settings in _SETTINGS.items():
            _report(name, setting, texts, watched_table("texts", {"columns": {"text": 1}, **settings}))
    _report_changes([text for texts in sets.values() for text in texts], sizes.changed)


def _report(name: str, setting: str, texts: Sequence[str], watched: WatchedTable) -> None:
    matches, seconds = median_cpu_seconds(lambda: _find(texts, watched))
    pairs = matches.pairs
    normalised = normalise_batch(texts)
    runs = [_runs(text) for text in normalised]
    both = list(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True))
    shares = np.array([len(runs[a] & runs[b]) / min(len(runs[a]), len(runs[b])) for a, b in both])
    is_wrong = shares < _WRONG_BELOW
    is_long = np.array(
        [min(len(normalised[a]), len(normalised[b])) >= _LENGTHS[1] for a, b in both], np.bool_
    )
    groups = Counter(matches.group_of[matches.group_of >= 0].tolist())
    print(
        f"{name:<26} {setting:<16} {len(texts):>6,} {_count_candidates(texts, watched):>10} {len(both):>6,} "
        f"{is_wrong.sum():>6,} {is_long.sum():>6,} {(is_wrong & is_long).sum():>6,} "
        f"{max(groups.values(), default=0):>13,} {seconds:>6.2f}",
        flush=True,
    )


def _find(texts: Sequence[str], watched: WatchedTable) -> Matches:
    rows = Fingerprinter(watched.recipe).fingerprint([(text,) for text in texts])
    table = rows.compared([None] * len(texts))
    return match_table(table, Rule(watched.rule.setting), watched.abridge_above, NullProgress())


def _count_candidates(texts: Sequence[str], watched: WatchedTable) -> str:
    if len(texts) > _MOST_COUNTED:
        return "-"
    with MeasuredTable(watched.recipe) as wide:
        wide.add_page([SourceRow(str(number), None, (text,), None) for number, text in enumerate(texts)])
        pairs = find_measured(wide.rows(), watched.rule.radius, _MOST_PAIRS)[0].measured
    # Among them are those of other measures, too.
    rule = Rule(watched.setting)
    return f"{np.count_nonzero(rule.is_near(pairs) | rule.shares_hashes(pairs)):,}"


def _runs(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text)
    return {tuple(words[i : i + _WORDS_A_RUN]) for i in range(max(1, len(words) - _WORDS_A_RUN + 1))}


def _report_changes(texts: Sequence[str], most: int) -> None:
    """Print, by length and kind of change, the share of the changed texts that are found."""
    rng = random.Random(1)
    texts = normalise_batch(texts)
    print(f"\nshare of changed texts that are found, at most {most} of each length; both settings")
    print(f"{'characters':<14}" + "".join(f"{kind:>15}" for kind in _CHANGES))
    for start, end in pairwise(_LENGTHS):
        some = sorted({text for text in texts if start <= len(text) < end})
        some = rng.sample(some, min(most, len(some)))
        shares = []
        for change in _CHANGES.values():
            changed = [change(text, rng.choice(some), rng) for text in some]
            shares.append("/".join(f"{_share_found(some, changed, each):.2f}" for each in _SETTINGS.values()))
        print(f"{start:>5} to {end:<5}" + "".join(f"{share:>15}" for share in shares), flush=True)


def _share_found(texts: Sequence[str], changed: Sequence[str], settings: dict[str, bool]) -> float:
    matches = _find([*texts, *changed], watched_table("texts", {"columns": {"text": 1}, **settings}))
    row_of = np.where(matches.copy_of < 0, np.arange(matches.copy_of.size), matches.copy_of).tolist()
    pairs = matches.pairs
    found = {frozenset(pair) for pair in zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)}
    wanted = [frozenset((row_of[i], row_of[len(texts) + i])) for i in range(len(texts))]
    return sum(len(pair) == 1 or pair in found for pair in wanted) / max(1, len(wanted))


def _edits(count: int) -> Callable[[str, str, random.Random], str]:
    return lambda text, _, rng: edited(text, count, _LETTERS, rng)


def _edits_in(one_in: int) -> Callable[[str, str, random.Random], str]:
    return lambda text, _, rng: edited(text, len(text) // one_in, _LETTERS, rng)


def _moved(text: str, _: str, rng: random.Random) -> str:
    sentences = re.split(r"(?<=[.!?]) ", text)
    rng.shuffle(sentences)
    return " ".join(sentences)


def _half(text: str, _: str, rng: random.Random) -> str:
    words = text.split()
    first = rng.choice((0, len(words) // 2))
    return " ".join(words[first : first + (len(words) + 1) // 2])


def _quoted(text: str, other: str, _: random.Random) -> str:
    middle = len(other) // 2
    return f"{other[:middle]} {text} {other[middle:]}"


def _words_replaced(text: str, other: str, rng: random.Random) -> str:
    new = other.split()
    return " ".join(rng.choice(new) if rng.random() < 0.1 else word for word in text.split())


_CHANGES: Final[dict[str, Callable[[str, str, random.Random], str]]] = {
    "1 edit": _edits(1),
    "5 edits": _edits(5),
    "10 edits": _edits(10),
    "1 in 20 edited": _edits_in(20),
    "1 in 10 words": _words_replaced,
    "moved": _moved,
    "half": _half,
    "quoted": _quoted,
    "quoted, 1 edit": lambda text, other, rng: _quoted(edited(text, 1, _LETTERS, rng), other, rng),
}
