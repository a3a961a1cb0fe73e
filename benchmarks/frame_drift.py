"""Frame drift: how pairs change when the list of frames is no longer up to date, and in how many rows."""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.datasets import read_petitions
from benchmarks.forms import Form, make_form
from benchmarks.petitions import find_pairs
from db_dedup.config import watched_table
from db_dedup.flow.text.frames import measure_frames, without_frames
from db_dedup.flow.text.normalise import normalise_batch
from db_dedup.jobs.scan.frames import DRIFT_CHARACTERS, FrameSample
from db_dedup.records.frames import NO_FRAMES, FrameList
from db_dedup.records.recipe import RecipeColumn
from db_dedup.sample import generate_petitions

_TEXT = [RecipeColumn("text", "text", 1)]
_LONGEST = 300
_NEW_SHARES = (0.01, 0.02, 0.025, 0.03, 0.05, 0.1)
_LEFT_SHARES = (0.03, 0.02, 0.015, 0.01)
_FIRST_PARTS = (0.5, 0.8, 0.9)


@dataclass(frozen=True)
class Sizes:
    """How many rows the table has."""

    rows: int = 2_400


SMALL = Sizes(300)


@dataclass(frozen=True)
class _Change:
    """A table before and after its rows changed."""

    name: str
    before: list[str]
    after: list[str]


def run(data: Path | None, sizes: Sizes | None = None) -> None:
    """Print for each change of a table the drift, and the pairs by the old list and by a new one."""
    texts = _texts(data, (sizes or Sizes()).rows)
    print(f"{len(texts):,} petitions in a form; the list of frames is measured, and then the table changes")
    print("rows with a frame by the new list; rows that the lists read differently at all; drift: those that")
    print(
        f"differ by {DRIFT_CHARACTERS} characters or more; pairs by both lists, and which the new one changes"
    )
    head = f"{'':<44} {'framed':>7} {'at all':>10} {'drift':>7} {'old list':>9} {'new list':>9}"
    print(f"{head} {'gained':>7} {'lost':>5}")
    for change in _changes(texts):
        _print_change(change)


def _print_change(change: _Change) -> None:
    before, after = normalise_batch(change.before), normalise_batch(change.after)
    old = _measure(before)
    new = _measure(after, old)
    sample = list(dict.fromkeys(after))
    by_old, by_new = (without_frames([sample], frames)[0] for frames in (old, new))
    differing = sum(a != b for a, b in zip(by_old, by_new, strict=True)) / len(sample)
    drift = FrameSample(len(after), sample, [sample], [1] * len(sample)).differing_share(old, new)
    framed = sum(a is not b for a, b in zip(by_new, sample, strict=True)) / len(sample)
    with_old, with_new = _pairs(change.after, old), _pairs(change.after, new)
    print(
        f"{change.name:<44} {framed:>7.1%} {differing:>10.2%} {drift:>7.2%} {len(with_old):>9,} "
        f"{len(with_new):>9,} {len(with_new - with_old):>7,} {len(with_old - with_new):>5,}"
    )


def _measure(texts: Sequence[str], former: FrameList = NO_FRAMES) -> FrameList:
    counts = Counter(texts)
    return measure_frames(_TEXT, [list(counts)], former, repeats=list(counts.values()))


def _changes(texts: Sequence[str]) -> Iterator[_Change]:
    form, other = make_form(1), make_form(2)
    plain = _in_form(texts, form)
    for part in _FIRST_PARTS:
        yield _Change(f"the last {1 - part:.0%} of the rows are new", plain[: int(part * len(plain))], plain)
    both = _in_form(texts, form, other, lambda i: i % 3 == 0)
    yield _Change("the same, two forms, half of the rows new", both[: len(both) // 2], both)
    for share in _NEW_SHARES:
        every = round(1 / share)
        after = _in_form(texts, form, other, lambda i, n=every: i % n == 0)  # type: ignore[misc]
        yield _Change(f"another form comes up, on {share:.1%} of the rows", plain, after)
    tenth = _in_form(texts, form, other, lambda i: i % 10 == 0)
    for share in _LEFT_SHARES:
        every = round(1 / share)
        after = _in_form(texts, form, other, lambda i, n=every: i % n == 0)  # type: ignore[misc]
        yield _Change(f"another form goes, from 10 % to {share:.1%}", tenth, after)
    longer = [f"{text}本单为紧急工单,请在二十四小时以内先行联系来电人。" for text in plain]
    yield _Change("a sentence is added to the form", plain, longer)
    half = [a if i % 2 else b for i, (a, b) in enumerate(zip(plain, longer, strict=True))]
    yield _Change("a sentence is added, on half of the rows", plain, half)


def _in_form(
    texts: Sequence[str], form: Form, other: Form | None = None, is_other: Callable[[int], bool] | None = None
) -> list[str]:
    """Put texts into one or two forms; the fields of a row do not depend on the forms of other rows."""
    return [
        (other if other and is_other and is_other(i) else form)(text, random.Random(i))
        for i, text in enumerate(texts)
    ]


def _pairs(raw: Sequence[str], frames: FrameList = NO_FRAMES) -> set[frozenset[str]]:
    rows: list[dict[str, object]] = [{"id": number, "text": text} for number, text in enumerate(raw)]
    return find_pairs(rows, watched_table("texts", {"columns": {"text": 1}}), frames)


def _texts(data: Path | None, count: int) -> list[str]:
    if data is None:
        raw = [petition.content for petition in generate_petitions(2 * count).petitions]
    else:
        raw = [str(row["content"]) for row in read_petitions(data)]
    texts = list(dict.fromkeys(text[:_LONGEST] for text in raw if text.strip()))
    random.Random(5).shuffle(texts)
    return texts[:count]
