"""Short texts: planted edits, pairs among titles and articles, and real edits of one question, by rules."""

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

from benchmarks.datasets import read_articles, read_petitions, read_questions, read_titles
from benchmarks.scores import Pair
from db_dedup.config import watched_table
from db_dedup.flow.compare.rule import Rule
from db_dedup.flow.features.characters import SHORT
from db_dedup.flow.matching.match import match_table
from db_dedup.flow.pipeline import Fingerprinter
from db_dedup.progress import NullProgress

_RULES: dict[str, dict[str, Any]] = {
    "3-grams": {"short_threshold": 0.0},
    "edit similarity 0.8": {"short_threshold": 0.8},
    "edit similarity 0.75 (balanced)": {},
    "edit similarity 0.7": {"short_threshold": 0.7},
}
_EDITS = (1, 2, 3)
_PLANTED = 300
_SHORTEST, _LONGEST = 12, 23
_LENGTHS = (0, 8, 12, 16, 20, 25, 31)
_SEED = 4
_NUMERALS = frozenset("0123456789〇零一二两三四五六七八九十百千万亿")


@dataclass(frozen=True)
class Sizes:
    """At most so many titles of weibo-hot-search, of petitions, articles of law, questions with edits."""

    titles: int = 6_000
    petitions: int = 2_000
    articles: int = 5_000
    questions: int = 10_000


SMALL = Sizes(titles=300, petitions=100, articles=100, questions=100)


def run(data: Path | None, sizes: Sizes = Sizes()) -> None:
    """Print a table for each question."""
    assert data is not None
    titles = distinct(read_titles(data, 20 * sizes.titles))
    chosen = random.Random(_SEED).sample(titles, min(sizes.titles, len(titles)))
    petitions = distinct([str(row["title"]) for row in read_petitions(data)])[: sizes.petitions]
    articles = distinct([str(row["text"]) for row in read_articles(data)])
    articles = [text for text in articles if len("".join(text.split())) <= SHORT][: sizes.articles]
    planted = planted_edits(titles)
    spared = {edits: [each for each in planted if not changes_numbers(*each, edits)] for edits in _EDITS}
    print(
        f"found of {len(planted)} titles of {_SHORTEST} to {_LONGEST} characters with 1, 2, 3 edits, and of "
        f"the {', '.join(str(len(each)) for each in spared.values())} in which no numeral is edited; "
        f"pairs among {len(chosen):,} distinct titles of weibo, {len(petitions):,} of petitions and "
        f"{len(articles):,} articles of law of at most {SHORT} characters"
    )
    edits_of_both = "   ".join([" ".join(f"{edits:>5}" for edits in _EDITS)] * 2)
    print(f"{'rule':<34} {edits_of_both} {'weibo':>7} {'petitions':>10} {'laws':>7}")
    for name, settings in _RULES.items():
        recalls = " ".join(f"{recall(planted, edits, settings):>5.2f}" for edits in _EDITS)
        of_spared = " ".join(f"{recall(spared[edits], edits, settings):>5.2f}" for edits in _EDITS)
        counts = [len(find_pairs(texts, settings)) for texts in (chosen, petitions, articles)]
        print(f"{name:<34} {recalls}   {of_spared} {counts[0]:>7,} {counts[1]:>10,} {counts[2]:>7,}")
    report_questions(read_questions(data), sizes.questions)


def distinct(texts: Sequence[str]) -> list[str]:
    """Return each text once, white space aside."""
    return list({"".join(text.split()): text for text in texts if text}.values())


def planted_edits(titles: Sequence[str]) -> list[tuple[str, dict[int, str]]]:
    """Return some titles, each with an edited copy for each number of edits."""
    chance = random.Random(_SEED)
    chosen = [title for title in titles if _SHORTEST <= len(title) <= _LONGEST]
    chosen = chance.sample(chosen, min(_PLANTED, len(chosen)))
    letters = "".join(chosen)
    return [(title, {edits: _edited(chance, title, edits, letters) for edits in _EDITS}) for title in chosen]


def _edited(chance: random.Random, text: str, edits: int, letters: str) -> str:
    """Insert, delete or replace characters, each at a place of its own."""
    for place in sorted(chance.sample(range(len(text)), edits), reverse=True):
        new = chance.choice(letters) * chance.choice((0, 1, 1, 2))
        kept = text[place] if len(new) == 2 else ""
        text = text[:place] + kept + new[:1] + text[place + 1 :]
    return text


def changes_numbers(title: str, copies: dict[int, str], edits: int) -> bool:
    """Return whether other numerals are in the edited copy."""
    own, other = ([each for each in text if each in _NUMERALS] for text in (title, copies[edits]))
    return own != other


def recall(planted: Sequence[tuple[str, dict[int, str]]], edits: int, settings: dict[str, Any]) -> float:
    """Return the share of the titles that are a pair with their edited copy."""
    texts = [text for title, copies in planted for text in (title, copies[edits])]
    found = find_pairs(texts, settings)
    return sum((2 * i, 2 * i + 1) in found for i in range(len(planted))) / max(1, len(planted))


def find_pairs(texts: Sequence[str], settings: dict[str, Any]) -> set[Pair]:
    """Return the pairs that a scan finds, exact duplicates included."""
    watched = watched_table("titles", {"columns": {"title": 1}, **settings})
    done = Fingerprinter(watched.recipe).fingerprint([(text,) for text in texts])
    found = match_table(
        done.compared([None] * len(texts)), Rule(watched.rule.setting), 1_000_000_000, NullProgress()
    )
    pairs = set(zip(found.pairs.left.tolist(), found.pairs.right.tolist(), strict=True))
    return pairs | {(first, row) for row, first in enumerate(found.copy_of.tolist()) if first >= 0}


def report_questions(questions: Sequence[tuple[str, str]], most: int) -> None:
    """Print what is found among the titles of questions that were edited.

    A pair of titles is right if both are of one question. Others may be right, too: several questions ask
    the same.
    """
    of_question: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for question, title in questions:
        of_question[question][title] = None
    edited = {question: titles for question, titles in of_question.items() if len(titles) > 1}
    rows = [(question, title) for question, titles in edited.items() for title in distinct(list(titles))]
    rows = rows[:most]
    numbers: defaultdict[str, list[int]] = defaultdict(list)
    for number, (question, _) in enumerate(rows):
        numbers[question].append(number)
    wanted = {pair for own in numbers.values() for pair in combinations(own, 2)}
    print(f"\n{len(rows):,} titles of edited questions of zhihu, {len(wanted):,} pairs of one question")
    bands = " ".join(f"{f'{low}-{high - 1}':>14}" for low, high in pairwise(_LENGTHS))
    print(f"{'by the characters of the longer':<34} {bands}   (found, of one question, missed)")
    for name, settings in _RULES.items():
        found = find_pairs([title for _, title in rows], settings)
        cells = []
        for low, high in pairwise(_LENGTHS):
            here = {pair for pair in found | wanted if low <= _longer(rows, pair) < high}
            right, missed = here & found & wanted, here & wanted - found
            cells.append(f"{len(here & found):>4} {len(right):>4} {len(missed):>4}")
        print(f"{name:<34} {' '.join(cells)}")


def _longer(rows: Sequence[tuple[str, str]], pair: Pair) -> int:
    return max(len("".join(rows[row][1].split())) for row in pair)
