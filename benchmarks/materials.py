"""Texts with known duplicate pairs: labelled petitions, and texts that were edited on purpose."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from benchmarks.datasets import read_articles, read_gold_pairs, read_petitions
from benchmarks.exact_pairs import similar_pairs
from benchmarks.scores import Pair
from db_dedup.config import watched_table
from db_dedup.flow.pipeline import Fingerprinter
from db_dedup.sample import generate_petitions

MOST_EDITS = 5
_SHORTEST = 40
_SHARED_AT_MOST = 0.4


@dataclass(frozen=True)
class Material:
    """Rows, and which of them are duplicates.

    Attributes:
        rows: each a text for every column, the columns in one order.
        wanted: the duplicate pairs, by the rows' numbers.
        edits: of a planted pair, how many characters were edited.
    """

    name: str
    rows: list[dict[str, str]]
    wanted: set[Pair]
    edits: dict[Pair, int]

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.rows[0])


def labelled_petitions(data: Path, most: int) -> Material:
    """petitions-gold, of which the pairs labelled V count."""
    petitions = read_petitions(data)[:most]
    numbers = {str(row["id"]): number for number, row in enumerate(petitions)}
    labelled = [
        pair for pair, label in read_gold_pairs(data).items() if label == "V" and pair <= set(numbers)
    ]
    wanted = {_ordered(*(numbers[key] for key in pair)) for pair in labelled}
    rows = [{"title": str(row["title"]), "content": str(row["content"])} for row in petitions]
    return Material(
        f"petitions-gold: {len(rows):,} petitions, {len(wanted)} pairs labelled V", rows, wanted, {}
    )


def planted_edits(data: Path | None, originals: int, repeats: int) -> Material:
    """Texts that have little in common, and repeats of some with one to five characters edited.

    Copies among the texts stay, and count with the repeats of either.
    """
    rng = random.Random(1)
    texts = _unlike_source_texts(data, originals, rng)
    characters = [c for text in texts[:1000] for c in text if c.isalpha()]
    origins = list(range(len(texts)))
    edits = [0] * len(texts)
    for i, origin in enumerate(rng.sample(range(len(texts)), min(repeats, len(texts)))):
        edits.append(1 + i % MOST_EDITS)
        texts.append(edited(texts[origin], edits[-1], characters, rng))
        origins.append(origin)
    classes: dict[str, list[int]] = {}
    for number, origin in enumerate(origins):
        classes.setdefault(texts[origin], []).append(number)
    wanted = {pair for members in classes.values() for pair in combinations(members, 2)}
    what = "articles of law" if data else "made-up petitions"
    return Material(
        f"planted: {len(texts):,} {what}, {len(texts) - len(set(origins)):,} of them repeats with 1 to "
        f"{MOST_EDITS} edits, {len(wanted):,} pairs",
        [{"text": text} for text in texts],
        wanted,
        {(origins[number], number): count for number, count in enumerate(edits) if count},
    )


def edited(text: str, count: int, characters: Sequence[str], rng: random.Random) -> str:
    """So many characters replaced, inserted or dropped."""
    for _ in range(count):
        at = rng.randrange(len(text))
        kept = at + rng.choice((0, 1))
        put = rng.choice(characters) if kept == at else rng.choice((rng.choice(characters), ""))
        text = text[:at] + put + text[kept:]
    return text


def _unlike_source_texts(data: Path | None, count: int, rng: random.Random) -> list[str]:
    texts = [text for text in _source_texts(data, 3 * count) if len(text) >= _SHORTEST]
    return unlike_texts(rng.sample(texts, min(len(texts), 2 * count)), count)


def unlike_texts(texts: Sequence[str], count: int) -> list[str]:
    """At most so many of the texts; of texts that share more, the first one alone.

    What they share is counted, not estimated.
    """
    watched = watched_table("texts", {"columns": {"text": 1}})
    features = Fingerprinter(watched.recipe).fingerprint([(text,) for text in texts]).features
    pairs = similar_pairs(features, "overlap", _SHARED_AT_MOST)
    alike = zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)
    left_out = {b for a, b in alike if texts[a] != texts[b]}
    return [text for number, text in enumerate(texts) if number not in left_out][:count]


def _source_texts(data: Path | None, count: int) -> list[str]:
    if data is None:
        return [petition.content for petition in generate_petitions(count, duplicate_share=0).petitions]
    return [str(row["text"]) for row in read_articles(data)]


def _ordered(a: int, b: int) -> Pair:
    return (a, b) if a < b else (b, a)
