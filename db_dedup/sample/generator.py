"""Generate petitions of which it is known which are duplicates, and which only look like duplicates."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import combinations
from random import Random

from db_dedup.sample.edits import KINDS, Kind, move_elsewhere
from db_dedup.sample.letters import COMMON_SHAPES, Letter, draw_channel, write_letter
from db_dedup.sample.material import load_subjects, pick, sample
from db_dedup.sample.slots import Slots

START = datetime(2023, 1, 1)
SPAN_DAYS = 730
LOOK_ALIKES = ("another_place", "same_matter")
_LOOK_ALIKE_SHARE = 0.04


@dataclass(frozen=True, slots=True)
class Petition:
    """One row of the sample table; `created_at` is naive, in whole seconds."""

    id: int
    title: str
    content: str
    region: str | None
    channel: str | None
    petitioner: str | None
    phone: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class TruePair:
    """A pair of petitions and its kind; `id_a` was received earlier."""

    id_a: int
    id_b: int
    kind: str


@dataclass(frozen=True)
class Sample:
    """Petitions with their duplicates.

    Attributes:
        petitions: in the order of their ids.
        pairs: every pair of duplicates, all pairs of a family included; `kind` is a key of `KINDS`.
        look_alikes: pairs that are no duplicates: the same letter about another place ("another_place"), the
            same matter in other words ("same_matter").
    """

    petitions: list[Petition]
    pairs: list[TruePair]
    look_alikes: list[TruePair] = field(default_factory=list)


def generate_petitions(count: int, seed: int = 1, duplicate_share: float = 0.2) -> Sample:
    """Write petitions; equal arguments give equal petitions in every process and Python version.

    Args:
        count: the number of petitions.
        seed: of the random numbers.
        duplicate_share: the share of petitions that repeat another one, at least 0 and less than 1.

    Raises:
        ValueError: `count` is negative, or `duplicate_share` is out of range.
    """
    if count < 0:
        raise ValueError(f"count must be 0 or more, not {count}")
    if not 0 <= duplicate_share < 1:
        raise ValueError(f"duplicate_share must be at least 0 and less than 1, not {duplicate_share}")
    rng = Random(seed)  # noqa: S311  (repeatable, not secret)
    families = list(_write_families(rng, count, repeats=int(count * duplicate_share)))
    arrivals = sorted(
        (letter.received + timedelta(days=2 * rng.random()), family, member)
        for family, (_, letters) in enumerate(families)
        for member, letter in enumerate(letters)
    )
    petitions: list[Petition] = []
    members: list[list[Petition]] = [[] for _ in families]
    for number, (_, family, member) in enumerate(arrivals, start=1):
        petition = _petition(number, families[family][1][member])
        petitions.append(petition)
        members[family].append(petition)
    pairs = sorted(_pairs(families, members), key=lambda pair: (pair.id_a, pair.id_b))
    return Sample(
        petitions,
        pairs=[pair for pair in pairs if pair.kind not in LOOK_ALIKES],
        look_alikes=[pair for pair in pairs if pair.kind in LOOK_ALIKES],
    )


def _write_families(rng: Random, count: int, repeats: int) -> Iterator[tuple[str, list[Letter]]]:
    """Yield (kind, letters) of each family; a letter without duplicates and look-alikes has the kind ""."""
    originals = count - repeats
    while repeats:
        for kind in sample(rng, list(KINDS), len(KINDS)):
            drawn = _count_repeats(rng, KINDS[kind], repeats, originals)
            if drawn:
                yield kind, _write_family(rng, kind, drawn)
                repeats -= drawn
                originals -= 1
    for look_alike in LOOK_ALIKES * int(originals * _LOOK_ALIKE_SHARE / 4 + 0.5):
        yield look_alike, _write_look_alikes(rng, look_alike)
        originals -= 2
    for _ in range(originals):
        yield "", [write_letter(rng, _draw_matter(rng), pick(rng, COMMON_SHAPES))]


def _count_repeats(rng: Random, kind: Kind, repeats: int, originals: int) -> int:
    """Return how many duplicates one letter gets; 0 if not enough repeats are left for the kind."""
    low, high = kind.repeats
    if low > repeats:
        return 0
    drawn = low + int((high - low + 1) * rng.random() ** 4)
    return min(repeats, max(drawn, -(-repeats // originals)))


def _write_family(rng: Random, kind: str, repeats: int) -> list[Letter]:
    how = KINDS[kind]
    shape = pick(rng, how.shapes or COMMON_SHAPES)
    original = write_letter(rng, _draw_matter(rng), shape, signed=how.signed, dated=how.dated)
    letters = [original]
    for _ in range(repeats):
        duplicate = how.edit(rng, original)
        letters.append(replace(duplicate, received=original.received + _delay(rng, kind)))
    return letters


def _write_look_alikes(rng: Random, look_alike: str) -> list[Letter]:
    first = write_letter(rng, _draw_matter(rng), pick(rng, ("letter", "letter", "long")))
    if look_alike == "another_place":
        second = move_elsewhere(rng, first)
    else:
        for slot in ("name", "phone", "home"):
            first.slots.pop(slot, None)
        second = write_letter(rng, first.slots, "letter", avoid=first.templates)
    channel = draw_channel(rng, first.subject)
    return [first, replace(second, channel=channel, received=first.received + _delay(rng, look_alike))]


def _draw_matter(rng: Random) -> Slots:
    seconds = int(rng.random() * SPAN_DAYS) * 86_400 + int((7 + 15 * rng.random()) * 3600)
    return Slots(rng, pick(rng, load_subjects()), START + timedelta(seconds=seconds))


def _delay(rng: Random, kind: str) -> timedelta:
    if kind == "followup":
        return timedelta(seconds=int(86_400 * (11 + 30 * rng.random())))
    delay = timedelta(seconds=60 + int(86_400 * 40 * rng.random() ** 4))
    return -delay if kind == "contained" and rng.random() < 0.5 else delay


def _petition(number: int, letter: Letter) -> Petition:
    return Petition(
        id=number,
        title=letter.title,
        content=letter.content,
        region=letter.region,
        channel=letter.channel,
        petitioner=letter.petitioner,
        phone=letter.phone,
        created_at=letter.received,
    )


def _pairs(families: list[tuple[str, list[Letter]]], members: list[list[Petition]]) -> Iterator[TruePair]:
    for (kind, _), petitions in zip(families, members, strict=True):
        in_order = sorted(petitions, key=lambda petition: (petition.created_at, petition.id))
        for a, b in combinations(in_order, 2):
            yield TruePair(a.id, b.id, kind)
