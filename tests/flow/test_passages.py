"""Passages: whatever is quoted is found, and no more is kept than that takes."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from db_dedup.flow._mix import mix
from db_dedup.flow.candidates.passages import MOST_PASSAGES, PASSAGE_CHARACTERS, WINDOW, find_passages
from db_dedup.flow.features.grams import hash_grams

QUOTED = PASSAGE_CHARACTERS + WINDOW - 1
characters = st.sampled_from("路灯坏了三个月晚上出行很不安全希望尽快修好")


def passages(*columns: list[str]) -> list[set[int]]:
    """Of each row, the columns row by row."""
    starts, found = find_passages([hash_grams(texts) for texts in columns], len(columns[0]))
    assert starts[0] == 0
    assert starts[-1] == found.size
    rows = [found[a:b].tolist() for a, b in pairwise(starts)]
    assert all(row == sorted(set(row)) for row in rows)
    return [set(row) for row in rows]


@given(
    st.text(characters, min_size=QUOTED, max_size=QUOTED),
    *(st.text(characters, max_size=60) for _ in range(4)),
)
def test_a_quotation_has_a_passage_in_common_with_its_source(
    quoted: str, before: str, after: str, other_before: str, other_after: str
) -> None:
    first, second = passages([before + quoted + after, other_before + quoted + other_after])
    assert first & second


# Half of the texts are long enough for more than one window.
@given(st.text(characters, min_size=QUOTED + 1, max_size=200) | st.text(characters, max_size=30))
def test_passages_are_the_first_of_each_window(text: str) -> None:
    """By brute force, on hashes of single passages."""
    runs = [text[i : i + PASSAGE_CHARACTERS] for i in range(len(text) - PASSAGE_CHARACTERS + 1)]
    if not runs:
        assert passages([text]) == [set()]
        return
    hashes = np.array([next(iter(row)) for row in passages(runs)], np.uint64)
    windows = [hashes[i : i + WINDOW] for i in range(max(1, len(hashes) - WINDOW + 1))]
    assert passages([text]) == [{int(window[np.argmin(mix(window))]) for window in windows}]


def test_white_space_does_not_matter() -> None:
    text = "小区门口的路灯坏了三个月，晚上出行很不安全"
    assert passages([text]) == passages([" ".join(text)])


def test_no_passage_reaches_into_the_next_column() -> None:
    text = "小区门口的路灯坏了三个月，晚上出行很不安全"
    assert passages([text[:6]], [text[6:]]) == passages([""], [text[6:]])
    assert passages([text], [text]) == passages([text])


def test_of_a_very_long_text_the_smallest_are_kept() -> None:
    chance = np.random.default_rng(1)
    text = "".join(map(chr, chance.integers(0x4E00, 0x9000, 50_000)))
    (kept,) = passages([text])
    assert len(kept) == MOST_PASSAGES
    halves = passages([text[:25_000], text[25_000:]])
    assert all(len(half) == MOST_PASSAGES for half in halves)
    assert sum(len(kept & half) for half in halves) >= MOST_PASSAGES - 1


def test_a_row_of_dots_is_no_passage() -> None:
    assert passages(["。！" * 40]) == [set()]
    text = "小区门口的路灯坏了三个月，晚上"
    assert passages(["。！" * 40 + text]) != [set()]


@pytest.mark.parametrize("columns", [[], [[]], [[""]], [["短"]]])
def test_nothing_to_keep(columns: list[list[str]]) -> None:
    starts, found = find_passages([hash_grams(texts) for texts in columns], len(columns[0]) if columns else 0)
    assert found.size == 0
    assert starts.size == (len(columns[0]) if columns else 0) + 1


def test_passages_never_change() -> None:
    """What is stored was computed by them."""
    assert passages(["小区门口的路灯坏了三个月，晚上出行很不安全，希望尽快修好。"]) == [GOLDEN]


GOLDEN = {5357531722099948283, 12576181100666918475}
