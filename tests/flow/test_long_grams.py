"""Long grams of rows: by the kernel and by plain Python, and which rows carry them."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from db_dedup.config import watched_table
from db_dedup.flow.compare import long_grams
from db_dedup.flow.features.details import LONG_GRAMS
from db_dedup.flow.features.long_grams import LEAST_GRAMS, find_long_grams
from db_dedup.flow.pipeline import Fingerprinter
from db_dedup.flow.text.normalise import normalise_batch
from db_dedup.records.frames import CUT
from tests.flow.from_python import callable_from_python
from tests.languages import Writer

least_shared_long = callable_from_python(long_grams.least_shared_long)
long_overlap = callable_from_python(long_grams.long_overlap)

characters = st.sampled_from("abcdefghijklmnoéжيक 1。,路한 \ud800\U0001e900\x00")
texts = st.one_of(st.text(characters, max_size=20), st.text(characters, min_size=20, max_size=60))

ENGLISH = Writer("English").document(200)
CHINESE = Writer("Chinese").document(200)


def grams_of(columns: Sequence[Sequence[str]]) -> list[set[int]]:
    starts, values = find_long_grams(columns)
    rows = [values[first:end].tolist() for first, end in pairwise(starts.tolist())]
    assert all(row == sorted(set(row)) for row in rows)
    return [set(row) for row in rows]


def by_python(row: Sequence[str]) -> set[str]:
    """The long grams of a row as texts."""
    letters = sum(c.isalpha() and c not in "路한" for text in row for c in text)
    others = sum(c.isalnum() for text in row for c in text) - letters
    solid = ["".join(c for c in text if not c.isspace()) for text in row]
    grams = {text[i : i + 5] for text in solid for i in range(len(text) - 4)}
    grams = {gram for gram in grams if any(map(str.isalnum, gram))}
    return grams if len(grams) >= LEAST_GRAMS and letters > others and letters >= LEAST_GRAMS else set()


@given(st.lists(st.tuples(texts, texts), max_size=5))
def test_long_grams_are_those_of_plain_python(raw: list[tuple[str, str]]) -> None:
    """By name: equal grams have equal hashes, in all rows together, and none is lost."""
    rows = [tuple(normalise_batch(row)) for row in raw]
    found = grams_of([[row[i] for row in rows] for i in (0, 1)])
    expected = [by_python(row) for row in rows]
    assert [len(row) for row in found] == [len(row) for row in expected]
    assert len(set().union(*found)) == len(set().union(*expected))
    for one, other in pairwise(range(len(rows))):
        assert len(found[one] & found[other]) == len(expected[one] & expected[other])


@pytest.mark.parametrize(
    ("row", "carries"),
    [
        ((ENGLISH,), True),
        ((ENGLISH[:60],), True),
        ((ENGLISH[:20],), False),
        ((ENGLISH[:40], ENGLISH[40:]), True),
        ((CHINESE,), False),
        ((CHINESE, ENGLISH[:150]), False),
        ((CHINESE[:50], ENGLISH), True),
        (("12345678" * 30, ENGLISH), False),
        (("word again " * 100,), False),
        (("", ""), False),
    ],
)
def test_which_rows_carry_long_grams(row: Sequence[str], carries: bool) -> None:
    assert bool(grams_of([[text] for text in row])[0]) is carries


def test_spaces_do_not_count_and_columns_are_apart() -> None:
    assert grams_of([[ENGLISH]]) == grams_of([[ENGLISH.replace(" ", "")]])
    assert grams_of([[ENGLISH], [CHINESE[:9]]]) != grams_of([[ENGLISH + CHINESE[:9]], [""]])


def test_no_long_gram_reaches_across_a_frame_that_was_cut_out() -> None:
    one, other = ENGLISH[:150], ENGLISH[151:300]
    assert grams_of([[f"{one}{CUT}{other}"]]) == grams_of([[one], [other]])
    assert grams_of([[f"{one}{CUT}{other}"]]) != grams_of([[one + other]])


def test_hashes_never_change() -> None:
    """Another process may have computed what is compared."""
    text = "abcdefghijklmnopqrstuvwxyzαβγδεζηθικλμνξοπρστυφχψωабвгдежзийклмнопрст"
    assert sorted(grams_of([[text]])[0])[:2] == GOLDEN


GOLDEN = [143197684609557152, 182982386119118685]


@pytest.mark.parametrize(
    ("settings", "carries"),
    [
        ({}, True),
        ({"long_grams": False}, False),
        ({"similarity": "char_jaccard", "threshold": 0.4}, False),
        ({"similarity": "word_jaccard", "threshold": 0.4}, False),
        ({"preset": "strict"}, False),
    ],
)
def test_which_rules_compute_them(settings: dict[str, Any], carries: bool) -> None:
    watched = watched_table("texts", {"columns": {"text": 1, "place": {"kind": "value"}}, **settings})
    details = Fingerprinter(watched.recipe).fingerprint([(ENGLISH, "north"), (ENGLISH, ENGLISH)]).details
    own, other = (details.of(row, LONG_GRAMS).tolist() for row in (0, 1))
    assert bool(own) is carries
    assert own == other, "a value has none"


def test_a_row_in_a_batch_has_what_it_has_alone() -> None:
    rows = [[ENGLISH], [CHINESE], [""], [ENGLISH[50:]], ["short"], [ENGLISH]]
    together = grams_of([[row[0] for row in rows]])
    assert together == [grams_of([row])[0] for row in rows]


@given(st.floats(0, 1), st.integers(20, 3000), st.integers(0, 3000), st.data())
def test_fewer_shared_than_the_bound_are_never_enough(
    threshold: float, smaller: int, more: int, data: st.DataObject
) -> None:
    shared = data.draw(st.integers(0, smaller))
    if shared < least_shared_long(threshold, smaller, smaller + more):
        assert long_overlap(float(shared), float(smaller), float(smaller + more)) < threshold


def test_the_similarity_is_on_the_scale_of_three() -> None:
    """One of ten characters edited: 0.9 to the third power of runs of three, to the fifth of runs of five."""
    assert long_overlap(0.9**5 * 1000, 1000.0, 1000.0) == pytest.approx(0.9**3)
    assert long_overlap(1000.0, 1000.0, 1000.0) == 1
    assert long_overlap(390.0, 1000.0, 2000.0) == 0
    assert long_overlap(690.0, 1000.0, 9000.0) == 0
    assert long_overlap(700.0, 1000.0, 9000.0) == pytest.approx(0.7**0.6)


def test_a_short_text_is_quoted_only_if_nearly_all_of_it_is_there() -> None:
    assert long_overlap(38.0, 50.0, 900.0) == 0
    assert long_overlap(40.0, 50.0, 900.0) == pytest.approx(0.8**0.6)
    assert long_overlap(10.0, 99.0, 299.0) == 1, "compared by 3-grams alone"
    assert long_overlap(10.0, 99.0, 300.0) == long_overlap(10.0, 100.0, 299.0) == 0
    assert long_overlap(0.0, 0.0, 900.0) == 1
