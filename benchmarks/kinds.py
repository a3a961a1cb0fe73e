"""What kinds of pairs there are among right and wrong pairs, and among planted changes; how often texts are
flagged as naming different places.

Right are the pairs of labelled petitions that are near-verbatim. Of a planted change the pair of a text and
its changed form is judged, whether the rule finds it or not.
"""

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.datasets import read_gold_pairs, read_petitions
from benchmarks.materials import edited
from benchmarks.petitions import find_pairs
from db_dedup.config import watched_table
from db_dedup.flow.compare.rule import Rule
from db_dedup.flow.pipeline import Fingerprinter
from db_dedup.flow.rows.digest import NO_FEATURES_DIGEST
from db_dedup.records.kinds import EXACT_DUPLICATES, KINDS, PairKind

Change = Callable[[str, random.Random], str]

WATCHED: Final = watched_table("petitions", {"columns": {"title": 1, "content": 1}})
_SENTENCE_END: Final = re.compile(r"(?<=[。！？；])")
_LENGTHS: Final = (30, 60, 200)
"""Characters from which on a text is of the next band."""
_MOST: Final = 400
"""Texts of a band."""


def run(data: Path | None) -> None:
    """Print the shares of each kind and of the flag."""
    assert data is not None
    rows = read_petitions(data)
    gold = read_gold_pairs(data)
    found = find_pairs(rows, WATCHED)
    texts = {str(row["id"]): (str(row["title"]), str(row["content"])) for row in rows}
    print(f"{'pairs':<44} {'pairs':>6} " + " ".join(f"{kind:>9}" for kind in KINDS) + f" {'flagged':>9}")
    groups = {
        "found, near-verbatim (right)": [pair for pair in found if gold.get(pair) == "V"],
        "found, others (wrong)": [pair for pair in found if gold.get(pair) != "V"],
        "labelled related, found or not": [pair for pair, label in gold.items() if label == "R"],
    }
    for name, pairs in groups.items():
        _print(name, _kinds([(texts[a], texts[b]) for a, b in map(sorted, pairs)]))
    contents = [content for _, content in texts.values()]
    for low, high in zip(_LENGTHS, (*_LENGTHS[1:], None), strict=True):
        some = [text for text in contents if low <= len(text) and (high is None or len(text) < high)]
        for name, change in _changes(contents).items():
            rng = random.Random(7)
            planted = [(("", text), ("", change(text, rng))) for text in some[:_MOST]]
            _print(f"from {low} characters, {name}", _kinds(planted))


def _changes(texts: Sequence[str]) -> dict[str, Change]:
    characters = [character for text in texts[:200] for character in text if character.isalnum()]

    def edit(count: int) -> Change:
        return lambda text, rng: edited(text, count, characters, rng)

    def quote(text: str, rng: random.Random) -> str:
        return rng.choice(texts)[:150] + text + rng.choice(texts)[:150]

    def move(text: str, rng: random.Random) -> str:
        sentences = [part for part in _SENTENCE_END.split(text) if part]
        rng.shuffle(sentences)
        return "".join(sentences)

    def swap_half(text: str, rng: random.Random) -> str:
        return text[: len(text) // 2] + rng.choice(texts)[: len(text) // 2]

    return {
        **{f"{count} edits": edit(count) for count in (1, 5, 10)},
        "sentences moved": move,
        "first half": lambda text, _: text[: len(text) // 2],
        "quoted in another": quote,
        "second half replaced": swap_half,
    }


def _kinds(pairs: Sequence[tuple[Sequence[str], Sequence[str]]]) -> Iterable[PairKind]:
    """Yield the kind of each pair of rows."""
    done = Fingerprinter(WATCHED.recipe).fingerprint([row for pair in pairs for row in pair])
    left = np.arange(0, 2 * len(pairs), 2, dtype=np.int32)
    packed = Rule(WATCHED.setting).kinds(done.compared([None] * 2 * len(pairs)), left, left + np.int32(1))
    for place, number in zip(left.tolist(), packed.tolist(), strict=True):
        one, other = done.digests[place], done.digests[place + 1]
        yield EXACT_DUPLICATES if one == other != NO_FEATURES_DIGEST else PairKind.of(number)


def _print(name: str, kinds: Iterable[PairKind]) -> None:
    known = list(kinds)
    counts = Counter(kind.kind for kind in known)
    shares = [counts[kind] / max(1, len(known)) for kind in KINDS]
    flagged = sum(bool(kind.other_place) for kind in known) / max(1, len(known))
    print(f"{name:<44} {len(known):>6} " + " ".join(f"{share:>9.3f}" for share in (*shares, flagged)))
