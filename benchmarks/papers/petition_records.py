"""Petitions as P1 compares them: weighted columns beside a long text."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final, Protocol

from db_dedup.flow.text.normalise import normalise_batch
from db_dedup.flow.text.stop_words import STOP_WORDS
from db_dedup.methods import SEGMENTERS, Corpus, cut_corpus
from db_dedup.sample.edits import KINDS
from db_dedup.sample.generator import START
from db_dedup.sample.letters import COMMON_SHAPES, Letter, write_letter
from db_dedup.sample.material import Subject, load_subjects, pick
from db_dedup.sample.slots import Slots

COLUMNS: Final = ("title", "region", "channel", "petitioner", "phone")
COLUMN_WEIGHT: Final = 2

SUBJECTS: Final = {
    "education": ("学区划分", "幼儿园"),
    "city management": ("广场舞与娱乐噪音", "油烟扰民", "违章停车", "垃圾清运", "施工噪音"),
    "construction": ("征地补偿", "房产证办理", "农村道路", "内涝与路灯", "电梯故障"),
}
"""P1's subjects -> the subjects of made-up petitions that belong to them."""

PLANTED: Final = ("exact", "whitespace", "typo", "masked", "dates", "reference", "salutation", "followup")
"""The edits whose result P1 would call similar: nearly the whole text stays."""


class Record(Protocol):
    """A petition with its columns; None is NULL."""

    @property
    def title(self) -> str: ...
    @property
    def content(self) -> str: ...
    @property
    def region(self) -> str | None: ...
    @property
    def channel(self) -> str | None: ...
    @property
    def petitioner(self) -> str | None: ...
    @property
    def phone(self) -> str | None: ...


def cut_contents(records: Sequence[Record]) -> Corpus:
    """The words of the long texts: jieba instead of IKAnalyzer, without particles, as P1."""
    texts = normalise_batch([record.content for record in records])
    return cut_corpus(texts, SEGMENTERS["jieba"].load(), STOP_WORDS)


def with_weighted_columns(records: Sequence[Record], contents: Corpus) -> Corpus:
    """The words of the long texts and the other columns, each value as often as it weighs."""
    tokens = [
        [*words, *(value for value in _values(record) for _ in range(COLUMN_WEIGHT))]
        for record, words in zip(records, contents.tokens, strict=True)
    ]
    return Corpus(contents.texts, tokens)


def as_one_text(records: Sequence[Record]) -> Corpus:
    """The words of all columns as one text, as a SimHash that knows no columns gets them."""
    texts = normalise_batch(["\n".join([*_column_texts(record), record.content]) for record in records])
    return cut_corpus(texts, SEGMENTERS["jieba"].load(), STOP_WORDS)


def _values(record: Record) -> list[str]:
    named = ((column, getattr(record, column)) for column in COLUMNS)
    return [f"{column}\x1f{value}" for column, value in named if value is not None]


def _column_texts(record: Record) -> list[str]:
    return [value for column in COLUMNS if (value := getattr(record, column)) is not None]


@dataclass(frozen=True)
class Mixture:
    """Distinct petitions, and after them the edited ones.

    Attributes:
        kinds: (original, edited one) -> the kind of edit, by the records' numbers.
    """

    records: list[Letter]
    kinds: dict[tuple[int, int], str]


def mix(
    subjects: Sequence[str], distinct: int, similar: int, *, keeps_columns: bool, seed: int = 1
) -> Mixture:
    """Write petitions of some subjects, and edit some of them, each kind of edit in turn.

    Args:
        subjects: names of subjects.
        distinct: how many petitions are written.
        similar: how many of them get one edited copy, at most `distinct`.
        keeps_columns: the copy has the original's other columns; else it has its own, as when it was sent
            through another channel.
        seed: of the random numbers.
    """
    rng = Random(seed)
    chosen = [subject for subject in load_subjects() if subject.name in subjects]
    kinds = [PLANTED[i % len(PLANTED)] if i < similar else "" for i in range(distinct)]
    records = [_write(rng, pick(rng, chosen), kind) for kind in kinds]
    planted = {}
    for number, kind in enumerate(kinds[:similar]):
        planted[number, len(records)] = kind
        copy = KINDS[kind].edit(rng, records[number])
        if keeps_columns:
            copy = replace(copy, **{column: getattr(records[number], column) for column in COLUMNS})
        records.append(copy)
    return Mixture(records, planted)


def _write(rng: Random, subject: Subject, kind: str) -> Letter:
    """A petition that an edit of this kind is possible for; "" for one that is not edited."""
    slots = Slots(rng, subject, START)
    if not kind:
        return write_letter(rng, slots, pick(rng, COMMON_SHAPES))
    how = KINDS[kind]
    shape = pick(rng, how.shapes or COMMON_SHAPES)
    return write_letter(rng, slots, shape, signed=how.signed, dated=how.dated)
