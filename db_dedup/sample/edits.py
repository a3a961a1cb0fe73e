"""The edits that make from one petition a duplicate of it, or one that only looks like a duplicate."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from db_dedup.sample.layout import GAPS, STYLES
from db_dedup.sample.letters import Letter, draw_channel, write_closing, write_line, write_salutation
from db_dedup.sample.material import pick, sample
from db_dedup.sample.slots import DATE_STYLES, Slots

_DATE = re.compile(r"(\d{4})[年./-](\d{1,2})[月./-](\d{1,2})日?")
_TYPING_SLIPS = "的地得在再做作已以是事和合他她它到道那哪时实有又因应像向"


def send_again(rng: Random, letter: Letter) -> Letter:
    """Return the same text, perhaps through another channel."""
    return replace(letter, channel=draw_channel(rng, letter.subject))


def change_white_space(rng: Random, letter: Letter) -> Letter:
    """Return the letter with another layout, gap and width of digits; the words stay."""
    layout = letter.layout
    return replace(
        letter,
        layout=replace(
            layout,
            style=pick(rng, [style for style in STYLES if style != layout.style]),
            gap=pick(rng, [gap for gap in GAPS if gap != layout.gap]),
            wide_digits=not layout.wide_digits,
        ),
    )


def mistype(rng: Random, letter: Letter) -> Letter:
    """Return the letter with one to five ideographs dropped, doubled or replaced, fewer in a short text."""
    sentences = list(letter.sentences)
    edits = 1 + int(rng.random() * min(5, sum(map(len, sentences)) // 12))
    while edits:
        i = int(rng.random() * len(sentences))
        at = int(rng.random() * len(sentences[i]))
        char = sentences[i][at]
        if not "一" <= char <= "龥":
            continue
        put = pick(rng, ("", char + char, pick(rng, _TYPING_SLIPS.replace(char, ""))))
        sentences[i] = sentences[i][:at] + put + sentences[i][at + 1 :]
        edits -= 1
    return replace(letter, sentences=tuple(sentences))


def sign_as_another(rng: Random, letter: Letter) -> Letter:
    """Return a joint letter: the same text with another name, home and telephone."""
    return letter.swap(_new_words(rng, letter, ("name", "phone", "home")))


def change_salutation(rng: Random, letter: Letter) -> Letter:
    """Return the letter with another title, salutation and closing; the body stays."""
    return replace(
        letter,
        title=write_line(rng, letter.slots, "titles"),
        salutation=write_salutation(rng, letter.slots),
        closing=write_closing(rng, letter.slots, signed=False),
    )


def mask_names(rng: Random, letter: Letter) -> Letter:
    """Return the letter with its people masked, each in one of the ways in which offices mask them."""
    changes = {letter.slots["phone"]: letter.slots["phone"][:3] + "****" + letter.slots["phone"][-4:]}
    for slot in ("name", "person"):
        if name := letter.slots.get(slot):
            changes[name] = pick(rng, _masks(name))
    return letter.swap(changes)


def shorten(rng: Random, letter: Letter) -> Letter:
    """Return only a few sentences of the middle.

    All results for one letter begin with the same sentence, so a shorter one is part of a longer one.
    """
    start = len(letter.sentences) // 3
    length = 2 + int(rng.random() * (len(letter.sentences) // 3))
    return replace(letter, salutation="", sentences=letter.sentences[start : start + length], closing="")


def follow_up(rng: Random, letter: Letter) -> Letter:
    """Return the letter with a sentence more that asks for the answer."""
    line = write_line(rng, letter.slots, "followups")
    if rng.random() < 0.5:
        return replace(letter, sentences=(line, *letter.sentences))
    return replace(letter, sentences=(*letter.sentences, line))


def restyle_dates(rng: Random, letter: Letter) -> Letter:
    """Return the letter with its dates written in another style."""
    style = pick(rng, [style for style in DATE_STYLES if style != letter.slots.date_style])

    def rewrite(match: re.Match[str]) -> str:
        year, month, day = map(int, match.groups())
        return style.format(y=year, m=month, d=day)

    return replace(letter, sentences=tuple(_DATE.sub(rewrite, sentence) for sentence in letter.sentences))


def reorder(rng: Random, letter: Letter) -> Letter:
    """Return the letter with the sentences after the first in another order."""
    first, *rest = letter.sentences
    shuffled = sample(rng, rest, len(rest))
    return replace(letter, sentences=(first, *(shuffled if shuffled != rest else rest[::-1])))


def add_reference(rng: Random, letter: Letter) -> Letter:
    """Return the letter with a reference number or a web address after the body."""
    return replace(letter, sentences=(*letter.sentences, write_line(rng, letter.slots, "references")))


def move_elsewhere(rng: Random, letter: Letter) -> Letter:
    """Return the same letter about another place, which is no duplicate."""
    named = tuple(slot for slot in letter.slots if slot.rstrip("23456789") in letter.subject.places)
    return letter.swap(_new_words(rng, letter, (*named, "name", "phone", "home")))


@dataclass(frozen=True)
class Kind:
    """A kind of duplicate: how it is made, of which letters, and how many.

    Attributes:
        edit: makes a duplicate of a letter.
        shapes: the shapes of letter that it is for; empty for all.
        repeats: the least and the most duplicates of one letter; few are more frequent than many.
        signed: the letter must have name, home and telephone in its text.
        dated: the letter must have a date in its text.
    """

    edit: Callable[[Random, Letter], Letter]
    shapes: tuple[str, ...] = ()
    repeats: tuple[int, int] = (1, 3)
    signed: bool = False
    dated: bool = False


_FULL = ("letter", "letter", "long", "essay")
KINDS: dict[str, Kind] = {
    "exact": Kind(send_again, repeats=(1, 4)),
    "whitespace": Kind(change_white_space),
    "typo": Kind(mistype),
    "joint": Kind(sign_as_another, _FULL, repeats=(2, 39), signed=True),
    "salutation": Kind(change_salutation, _FULL),
    "masked": Kind(mask_names, _FULL, signed=True),
    "contained": Kind(shorten, ("long", "essay"), repeats=(1, 2)),
    "followup": Kind(follow_up, _FULL),
    "dates": Kind(restyle_dates, _FULL, repeats=(1, 2), dated=True),
    "reordered": Kind(reorder, _FULL, repeats=(1, 2)),
    "reference": Kind(add_reference, _FULL),
}


def _new_words(rng: Random, letter: Letter, slots: tuple[str, ...]) -> dict[str, str]:
    fresh = Slots(rng, letter.subject, letter.received)
    return {letter.slots[slot]: fresh[slot] for slot in slots}


def _masks(name: str) -> tuple[str, ...]:
    family, given = name[0], name[1:]
    return (
        f"{family}*{given[-1]}", f"{family}{given[::-1]}", f"{family}某某", f"{family}某",
        f"{family}XX", f"{family}**", "XXX", "*****", f"{family}先生", f"{family}女士",
    )  # fmt: skip
