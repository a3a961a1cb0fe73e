"""Any number of texts from the sentences of articles of law, few of which are near-copies of others.

Articles that are multiplied with fresh edits have as many copies as rounds, so that pairs grow with the
square of the rows. Here the share of near-copies is fixed, as in tables that people fill. Each text depends
on its number alone, so none is kept.
"""

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.datasets import read_articles
from benchmarks.materials import edited

MOST_EDITS: Final = 12

_SENTENCE: Final = re.compile(r"[^。；\n]+[。；]")
_SHORTEST, _LONGEST = 10, 60
_LEAST_CHARACTERS: Final = 150
"""Of a text: two texts that share the longest sentence are no duplicates by that."""


class JoinedArticles:
    """Texts by number: sentences of several articles, or a near-copy of an earlier text."""

    def __init__(self, data: Path, copies: int) -> None:
        """Read the articles.

        Args:
            data: the folder of texts.
            copies: how many of a hundred texts are near-copies of an earlier one.
        """
        articles = read_articles(data)
        found = (sentence for row in articles for sentence in _SENTENCE.findall(str(row["text"])))
        self._sentences = sorted({each for each in found if _SHORTEST <= len(each) <= _LONGEST})
        self._characters = [c for sentence in self._sentences[::400] for c in sentence if c.isalpha()]
        self._copies = copies / 100

    def text(self, number: int) -> str:
        """Return the text of a number from 0 on."""
        chance = random.Random(number)
        if number and chance.random() < self._copies:
            earlier = self.text(chance.randrange(number))
            return edited(earlier, chance.randint(1, MOST_EDITS), self._characters, chance)
        parts: list[str] = []
        while sum(map(len, parts)) < _LEAST_CHARACTERS:
            parts.append(chance.choice(self._sentences))
        return "".join(parts)

    def texts(self, count: int) -> Iterator[str]:
        """Yield the first texts."""
        return map(self.text, range(count))
