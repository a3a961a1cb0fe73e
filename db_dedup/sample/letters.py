"""A petition in its parts, before it is written out as a text."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from random import Random

from db_dedup.sample.layout import Layout, draw_layout
from db_dedup.sample.material import Subject, Template, load_subjects, pick, sample
from db_dedup.sample.slots import Slots

# Shape -> (pool, least, most): how many sentences of which pool, in this order.
SHAPES: Mapping[str, tuple[tuple[str, int, int], ...]] = {
    "line": (("shorts", 1, 1),),
    "note": (("openings", 1, 1), ("facts", 1, 1), ("demands", 1, 1)),
    "letter": (
        ("openings", 1, 1), ("facts", 2, 3), ("history", 0, 1), ("complaints", 1, 1), ("demands", 1, 1),
    ),
    "long": (
        ("openings", 1, 1), ("facts", 4, 5), ("dated", 0, 1), ("history", 1, 2),
        ("complaints", 2, 2), ("demands", 2, 2), ("pleas", 1, 1),
    ),
    "essay": (
        ("openings", 1, 1), ("facts", 5, 11), ("dated", 1, 3), ("history", 2, 8),
        ("complaints", 2, 4), ("demands", 2, 4), ("pleas", 1, 3),
    ),
    "aside": (
        ("asides", 1, 1), ("openings", 1, 1), ("facts", 3, 7), ("complaints", 1, 2), ("demands", 1, 3),
    ),
}  # fmt: skip
# The shapes of a hundred petitions.
COMMON_SHAPES = ("line",) * 3 + ("note",) * 30 + ("letter",) * 44 + ("long",) * 18 + ("essay",) * 5


@dataclass(frozen=True, slots=True)
class Letter:
    """A petition in its parts; its sentences were made from `templates`."""

    slots: Slots
    templates: tuple[Template, ...]
    title: str
    salutation: str
    sentences: tuple[str, ...]
    closing: str
    layout: Layout
    region: str | None
    channel: str | None
    petitioner: str | None
    phone: str | None
    received: datetime

    @property
    def subject(self) -> Subject:
        """The subject of the petition."""
        return self.slots.subject

    @property
    def content(self) -> str:
        """The whole text with its layout."""
        return self.layout.render(self.salutation, self.sentences, self.closing)

    def swap(self, changes: Mapping[str, str]) -> "Letter":
        """Return the letter with every old word replaced by its new one, in all parts and columns."""

        def put(text: str) -> str:
            for old, new in changes.items():
                text = text.replace(old, new)
            return text

        return replace(
            self,
            title=put(self.title),
            salutation=put(self.salutation),
            sentences=tuple(map(put, self.sentences)),
            closing=put(self.closing),
            region=self.region and put(self.region),
            petitioner=self.petitioner and put(self.petitioner),
            phone=self.phone and put(self.phone),
        )


def write_letter(
    rng: Random,
    slots: Slots,
    shape: str,
    *,
    signed: bool = False,
    dated: bool = False,
    avoid: Collection[Template] = (),
) -> Letter:
    """Write a new petition.

    Args:
        rng: the random numbers.
        slots: the words to use; petitions with the same slots are about the same matter.
        shape: a key of `SHAPES`.
        signed: put name, home and telephone into the text.
        dated: put a date into the text.
        avoid: templates not to use if there are others.
    """
    subject = slots.subject
    signed = signed or (shape != "line" and rng.random() < 0.15)
    templates = _choose_templates(rng, subject, shape, avoid)
    if signed:
        templates.insert(1, pick(rng, subject.pools["intros"]))
    if dated and not any(template in subject.pools["dated"] for template in templates):
        templates.insert(-1, pick(rng, subject.pools["dated"]))
    sentences = [slots.fill(template.choose(rng)) for template in templates]
    if shape == "essay" and rng.random() < 0.6:
        sentences += _write_aside(rng, slots)
    return Letter(
        slots=slots,
        templates=tuple(templates),
        title=write_line(rng, slots, "titles"),
        salutation=write_salutation(rng, slots) if shape != "line" else "",
        sentences=tuple(sentences),
        closing=write_closing(rng, slots, signed) if shape != "line" else "",
        layout=draw_layout(rng),
        region=_or_none(rng, slots["district"], 0.05),
        channel=draw_channel(rng, subject),
        petitioner=_or_none(rng, slots["name"], 0.1),
        phone=_or_none(rng, slots["phone"], 0.25),
        received=slots.received,
    )


def write_line(rng: Random, slots: Slots, pool: str) -> str:
    """Write one sentence of the pool."""
    return slots.fill(pick(rng, slots.subject.pools[pool]).choose(rng))


def write_salutation(rng: Random, slots: Slots) -> str:
    """Write a salutation, or "" as many petitioners do."""
    return write_line(rng, slots, "salutations") if rng.random() < 0.65 else ""


def write_closing(rng: Random, slots: Slots, signed: bool) -> str:
    """Write thanks, a signature if `signed`, or "" as many petitioners do."""
    pool = "signatures" if signed and rng.random() < 0.6 else "closings"
    return write_line(rng, slots, pool) if rng.random() < 0.6 else ""


def draw_channel(rng: Random, subject: Subject) -> str | None:
    """Return the channel of a petition, sometimes None for an unknown one."""
    return _or_none(rng, pick(rng, subject.pools["channels"]).choose(rng), 0.05)


def _choose_templates(
    rng: Random, subject: Subject, shape: str, avoid: Collection[Template] = ()
) -> list[Template]:
    chosen: list[Template] = []
    for pool, low, high in SHAPES[shape]:
        wanted = low + int(rng.random() * (high - low + 1))
        free = [template for template in subject.pools[pool] if template not in avoid]
        chosen += sample(rng, free or subject.pools[pool], wanted)
    return chosen


def _write_aside(rng: Random, slots: Slots) -> list[str]:
    """Return sentences about a second matter in the same place."""
    other = Slots(rng, pick(rng, load_subjects()), slots.received)
    other.update(slots)
    return [other.fill(template.choose(rng)) for template in _choose_templates(rng, other.subject, "aside")]


def _or_none(rng: Random, value: str, none_share: float) -> str | None:
    return None if rng.random() < none_share else value
