"""What counts as a frame, what is cut out, and what that means for the pairs that are found."""

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from db_dedup.config import watched_table
from db_dedup.engines.embedded.fingerprint_process import FingerprintProcess, FingerprintProcesses
from db_dedup.flow.compare.rule import Rule
from db_dedup.flow.features.counting import TokenHasher, count_features
from db_dedup.flow.features.grams import hash_grams
from db_dedup.flow.matching.match import match_table
from db_dedup.flow.pipeline import Fingerprinter, joined_rows
from db_dedup.flow.rows.digest import NO_FEATURES_DIGEST
from db_dedup.flow.text.frames import frame_spans, measure_frames, without_frames
from db_dedup.flow.text.normalise import normalise_batch
from db_dedup.flow.text.segment import cut_in_batches, make_segmenter
from db_dedup.progress import NullProgress
from db_dedup.records.frames import CUT, NO_FRAMES, FrameList
from db_dedup.records.recipe import Recipe, RecipeColumn
from tests.flow.forms import (
    CLOSING,
    FORMED,
    FRAMES,
    OPENING,
    TEXT,
    Form,
    copies_of_letter,
    in_forms,
    left_of,
    measured,
    named_form,
    random_form,
    random_text,
    random_words,
    unlike_texts,
    usual_form,
)


def recipe_with(frames: FrameList) -> Recipe:
    watched = watched_table("petitions", {"columns": {"content": 1}})
    return replace(watched.recipe, frames=frames)


def pairs_of(texts: Sequence[str], frames: FrameList) -> set[tuple[int, int]]:
    """What the preset `balanced` finds."""
    watched = watched_table("petitions", {"columns": {"content": 1}})
    done = Fingerprinter(recipe_with(frames)).fingerprint([(text,) for text in texts])
    pairs = match_table(done.compared([None] * len(texts)), Rule(watched.rule.setting), 10**6, NullProgress())
    assert (pairs.copy_of < 0).all()
    return set(zip(pairs.pairs.left.tolist(), pairs.pairs.right.tolist(), strict=True))


# What is found of a frame


def test_a_form_is_cut_out_with_its_numbers_and_dates() -> None:
    assert left_of(FORMED, FRAMES) == unlike_texts()


def test_labels_are_cut_out_with_the_names_between_them() -> None:
    texts = unlike_texts()
    formed = in_forms(texts, [named_form])
    assert left_of(formed, measured(formed)) == texts


def test_too_few_rows_have_no_frame() -> None:
    assert measured(FORMED[:199]) is NO_FRAMES
    assert measured(FORMED[:200]).has_frames


@pytest.mark.parametrize(("rows", "framed", "is_found"), [
    (250, 17, False),  # 7 %, but fewer than twenty
    (250, 22, True),
    (800, 36, False),  # fewer than 5 %
    (800, 44, True),
    (2_400, 56, False),
    (2_400, 64, True),  # 2.7 %, and 60 rows
    (4_000, 76, False),  # fewer than 2 %
    (4_000, 84, True),
])  # fmt: skip
def test_how_many_rows_make_a_frame(rows: int, framed: int, *, is_found: bool) -> None:
    rng = random.Random(8)
    own = normalise_batch([random_text(rng, 40) for _ in range(rows)])
    texts = normalise_batch(in_forms(own[:framed], [usual_form])) + own[framed:]
    assert left_of(texts, measured(texts)) == (own if is_found else texts)


def test_a_gram_stays_below_the_share_at_which_it_enters() -> None:
    rng = random.Random(9)
    texts = [random_text(rng, 40) for _ in range(800)]
    fewer = [*in_forms(texts[:33], [usual_form]), *texts[33:]]
    assert not measured(fewer).has_frames
    assert measured(fewer, FRAMES).has_frames
    assert np.isin(measured(fewer, FRAMES).grams[0], FRAMES.grams[0]).all()
    fewest = [*in_forms(texts[:24], [usual_form]), *texts[24:]]
    assert not measured(fewest, FRAMES).has_frames


def test_a_joint_letter_is_no_frame() -> None:
    assert not measured([*unlike_texts(), *copies_of_letter(400)]).has_frames


def test_a_letter_to_which_many_senders_add_something_is_no_frame() -> None:
    rng = random.Random(10)
    letters = [
        letter + random_text(rng, 30 * (number % 2)) for number, letter in enumerate(copies_of_letter(300))
    ]
    assert not measured([*unlike_texts(), *letters]).has_frames


def test_dates_and_set_phrases_are_not_cut_out() -> None:
    rng = random.Random(11)
    texts = [
        f"20{rng.randrange(10, 30)}年{rng.randrange(1, 13)}月3日{text}希望有关部门" for text in unlike_texts()
    ]
    texts = normalise_batch(texts)
    frames = measured(texts)
    assert frames.has_frames
    assert left_of(texts, frames) == texts


def test_each_text_column_has_frames_of_its_own_and_a_value_has_none() -> None:
    columns = [RecipeColumn("title", "text", 1), RecipeColumn("kind", "value", 1), *TEXT]
    texts = unlike_texts()
    frames = measure_frames(columns, [texts, FORMED, FORMED])
    assert [grams.size > 0 for grams in frames.grams] == [False, False, True]
    assert without_frames([FORMED, FORMED, FORMED], frames) == [FORMED, FORMED, texts]
    assert frame_spans(FORMED[0], 0, frames) == []
    assert measure_frames(columns, [texts, FORMED, texts]) is NO_FRAMES


def test_columns_with_different_frames() -> None:
    columns = [RecipeColumn("title", "text", 1), *TEXT]
    titles = normalise_batch(
        [f"关于{text[:12]}的来信事项转办通知书(市民热线督办件)" for text in unlike_texts()]
    )
    frames = measure_frames(columns, [titles, FORMED])
    assert all(grams.size for grams in frames.grams)
    texts = unlike_texts()
    assert without_frames([titles, FORMED], frames) == [[f"关于{text[:12]}" for text in texts], texts]
    # The frame of one column is no frame in the other.
    assert without_frames([FORMED, titles], frames) == [FORMED, titles]


def test_a_form_in_two_languages() -> None:
    rng = random.Random(15)
    head = "complaint no. {} 工单 dear sir or madam 尊敬的领导您好 details 诉求内容:"
    texts = normalise_batch([*unlike_texts(150), *(random_words(rng, 20) for _ in range(150))])
    formed = normalise_batch(
        [f"{head.format(rng.randrange(10**6))} {t} thank you 谢谢 office" for t in texts]
    )
    assert left_of(formed, measured(formed)) == texts


def test_english_forms_are_made_of_words() -> None:
    rng = random.Random(12)
    texts = [random_words(rng, rng.randrange(6, 60)) for _ in range(300)]
    opening = "dear sir or madam, thank you for taking the time to read my complaint no. {}:"
    closing = "i look forward to hearing from you soon. yours faithfully"
    formed = [f"{opening.format(rng.randrange(10**6))} {text} {closing}" for text in texts]
    assert left_of(formed, measured(formed)) == texts


def test_mixed_languages_in_one_table() -> None:
    rng = random.Random(13)
    english = [random_words(rng, 20) for _ in range(150)]
    mixed = unlike_texts(150) + [
        f"this is a form in english that is around the text {text}" for text in english
    ]
    frames = measured([*in_forms(mixed[:150], [usual_form]), *mixed[150:]])
    assert left_of(mixed[150:], frames) == english
    assert left_of([f"this is a form in english that is around the text {mixed[0]}"], frames) == [mixed[0]]


@pytest.mark.parametrize("text", [
    "แจ้งซ่อมไฟถนนหน้าบ้านเลขที่",
    "道路の街灯が故障していますので修理を",
    "가로등이 고장 나서 밤에 너무 어두워요 빨리 고쳐 주세요 부탁",
    "Просим принять меры по ремонту дороги в нашем районе города",
])  # fmt: skip
def test_forms_of_other_scripts(text: str) -> None:
    texts = unlike_texts()
    opening = normalise_batch([text])[0]
    formed = [f"{opening} {each}" for each in texts]
    assert left_of(formed, measured(formed)) == texts


# What is left of one text


def test_what_was_cut_out_separates() -> None:
    frame = FORMED[0].replace(unlike_texts()[0], "|").split("|")
    text = f"门口路灯坏{frame[1]}了很久没人修{frame[0]}请尽快处理"
    (left,) = left_of([text], FRAMES)
    assert left == CUT.join(["门口路灯坏", "了很久没人修", "请尽快处理"])
    grams = set(hash_grams([left]).tolist())
    assert grams & set(hash_grams(["灯坏了", "坏了很", "人修请", "修请尽"]).tolist()) <= {0, 1}
    for name in ("jieba", "jieba-search", "jieba-full", "words", "chars:2", "chars:3"):
        (tokens,) = cut_in_batches(make_segmenter(name), [left])
        assert not any("坏了" in token or "修请" in token for token in tokens)


def test_a_row_with_nothing_but_a_frame_is_read_entirely() -> None:
    blank = FORMED[0].replace(unlike_texts()[0], "")
    kept = FORMED[0].replace(unlike_texts()[0], "路灯")
    assert left_of([blank, kept], FRAMES) == [blank, kept]
    assert frame_spans(blank, 0, FRAMES) == []
    assert left_of([FORMED[0].replace(unlike_texts()[0], "路灯不亮")], FRAMES) == ["路灯不亮"]


def test_a_part_that_is_too_little_is_cut_out_with_the_frame() -> None:
    head, tail = FORMED[0].split(unlike_texts()[0])
    text = f"张三 {head}门口路灯坏了{tail}欧阳锋 {head}1号 楼{tail}请修"
    assert left_of([text], FRAMES) == ["门口路灯坏了"]
    start = text.index("门口")
    assert frame_spans(text, 0, FRAMES) == [(0, start), (start + 6, len(text))]


def test_a_text_shorter_than_its_frame() -> None:
    assert left_of([CLOSING, CLOSING[:5], "", "好"], FRAMES) == [CLOSING, CLOSING[:5], "", "好"]


pieces = st.lists(
    st.one_of(
        st.sampled_from(
            [CLOSING, OPENING.format(number=1, year=2, month=3), CLOSING[3:9], CLOSING[5:22], " "]
        ),
        st.text(st.sampled_from("路灯坏了ab1 。,"), max_size=20),
    ),
    max_size=6,
).map(lambda parts: normalise_batch(["".join(parts)])[0])


@given(st.lists(pieces, max_size=5), st.integers(0, 5))
def test_a_row_never_depends_on_other_rows(rows: list[str], border: int) -> None:
    left = left_of(rows, FRAMES)
    assert left == left_of(rows[:border], FRAMES) + left_of(rows[border:], FRAMES)
    assert left == [left_of([row], FRAMES)[0] for row in rows]


@given(pieces)
def test_spans_are_what_is_cut_out(text: str) -> None:
    spans = frame_spans(text, 0, FRAMES)
    borders = [0, *(place for span in spans for place in span), len(text)]
    assert borders == sorted(borders)
    parts = [text[begin:end] for begin, end in zip(borders[::2], borders[1::2], strict=True)]
    (left,) = left_of([text], FRAMES)
    assert left == (CUT.join(part for part in parts if part) if spans else text)
    assert (left is text) is not bool(spans)


@given(pieces)
def test_to_cut_twice_changes_nothing(text: str) -> None:
    once = left_of([text], FRAMES)
    assert left_of(once, FRAMES) == once


@given(st.text(st.sampled_from("路灯坏了很久没人修ab1 。,"), max_size=80))
def test_a_text_without_frame_grams_is_the_same_object(text: str) -> None:
    (row,) = normalise_batch([text])
    assert left_of([row], FRAMES)[0] is row
    assert left_of([row], NO_FRAMES)[0] is row


def test_a_long_text_is_cut() -> None:
    text = random_text(random.Random(14), 3_000_000)
    (left,) = left_of([usual_form(text, random.Random(1))], FRAMES)
    assert left == text


# What it means for fingerprints and pairs


@given(
    st.lists(st.lists(st.text(st.sampled_from("路灯坏a 。"), max_size=5), min_size=2, max_size=4), max_size=4)
)
def test_3_grams_of_what_is_left_are_those_of_its_parts(rows: list[list[str]]) -> None:
    joined = [CUT.join(parts) for parts in rows]
    assume(joined)
    cut = TokenHasher().hash_tokens(make_segmenter("chars:3").cut_batch(joined))
    counts = count_features([hash_grams(joined)], [1], "raw").counts.tolist()
    assert counts == count_features([cut], [1], "raw").counts.tolist()
    for parts, count in zip(rows, counts, strict=True):
        long = [part for part in parts if len(part.replace(" ", "")) >= 3]
        own = count_features([hash_grams(long)], [1], "raw").hashes if long else np.empty(0)
        assert count == np.unique(own).size


def test_digests_do_not_depend_on_frames() -> None:
    rows = [(text,) for text in [*FORMED, "", "。", "路灯", CLOSING, f"{CLOSING} the of and"]]
    of_words = {"columns": {"content": 1}, "segmenter": "words", "stop_words": "drop"}
    for settings_ in ({"columns": {"content": 1}}, of_words):
        recipe = watched_table("petitions", settings_).recipe
        entire = Fingerprinter(recipe).fingerprint(rows)
        without = Fingerprinter(replace(recipe, frames=FRAMES)).fingerprint(rows)
        assert without.digests == entire.digests
        assert NO_FEATURES_DIGEST in without.digests
        assert (without.fingerprints[:300] != entire.fingerprints[:300]).any()


def test_rows_whose_frame_was_left_out_are_marked() -> None:
    fingerprinter = Fingerprinter(recipe_with(FRAMES))
    done = fingerprinter.fingerprint([(text,) for text in [*FORMED[:3], "路灯坏了很久没人修", ""]])
    assert done.framed.tolist() == [True] * 3 + [False] * 2
    again = fingerprinter.fingerprint([(FORMED[0],)], known=done.digests[:1])
    assert (again.framed.tolist(), again.is_known.tolist()) == ([True], [True])
    assert joined_rows([again, done]).framed.tolist() == [True, *done.framed.tolist()]
    assert not Fingerprinter(recipe_with(NO_FRAMES)).fingerprint([(FORMED[0],)]).framed.any()


def test_a_row_is_fingerprinted_as_what_is_left_of_it() -> None:
    texts = unlike_texts()
    with_form = Fingerprinter(recipe_with(FRAMES)).fingerprint([(text,) for text in FORMED])
    plain = Fingerprinter(recipe_with(NO_FRAMES)).fingerprint([(text,) for text in texts])
    assert np.array_equal(with_form.fingerprints, plain.fingerprints)
    assert np.array_equal(with_form.features.hashes, plain.features.hashes)
    assert np.array_equal(with_form.sketches.counts, plain.sketches.counts)
    by_form = Fingerprinter(recipe_with(FRAMES)).hashes_by_generator([FORMED])
    by_text = Fingerprinter(recipe_with(NO_FRAMES)).hashes_by_generator([texts])
    for generator, hashes in by_text.items():
        assert all(map(np.array_equal, by_form[generator], hashes))


def test_a_recipe_takes_its_list_to_another_process() -> None:
    """`FingerprintProcess` sends it the recipe."""
    rows = [(text,) for text in FORMED[:5]]
    with FingerprintProcess(recipe_with(FRAMES)) as process:
        done = process.fingerprint(rows)
    assert done.framed.all()
    own = Fingerprinter(recipe_with(FRAMES)).fingerprint(rows)
    assert np.array_equal(done.fingerprints, own.fingerprints)


def test_processes_that_run_already_are_told_of_the_list() -> None:
    rows = [(text,) for text in FORMED[:5]]
    own = Fingerprinter(recipe_with(FRAMES)).fingerprint(rows)
    with FingerprintProcesses(recipe_with(NO_FRAMES), 2) as processes:
        assert not processes.fingerprint(rows).framed.any()
        processes.leave_out(FRAMES)
        for _ in range(2):  # one after the other answers
            assert np.array_equal(processes.fingerprint(rows).fingerprints, own.fingerprints)


@pytest.mark.parametrize("letters", [120, 10, 200, 450])
@pytest.mark.parametrize(
    "forms",
    [[usual_form], [named_form], [random_form(n) for n in range(3)], [random_form(n) for n in range(10)]],
    ids=["one", "names", "three", "ten"],
)
def test_planted_forms(forms: list[Form], letters: int) -> None:
    """No false pair; the joint letter is found, also in different forms."""
    if len(forms) == 10 and letters == 10:
        letters = 60  # each form needs twenty rows
    texts = normalise_batch(in_forms([*unlike_texts(), *copies_of_letter(letters)], forms))
    found = pairs_of(texts, measured(texts))
    wanted = set(combinations(range(300, 300 + letters), 2))
    assert not found - wanted
    assert len(found & wanted) >= 0.97 * len(wanted)


def test_without_frames_the_form_makes_pairs() -> None:
    """The tests above would find nothing wrong if the forms made no pairs."""
    assert len(pairs_of(FORMED, NO_FRAMES)) > 1_000


def test_short_texts_in_a_form_are_no_pairs() -> None:
    texts = in_forms(unlike_texts(shortest=4), [usual_form])
    assert not pairs_of(texts, measured(texts))


# What may never change


def test_grams_never_change() -> None:
    """A stored list was computed by them."""
    texts = ["".join(chr(0x4E00 + (n * n * 31 + k * k * 7) % 4_001) for k in range(30)) for n in range(200)]
    frames = measured(
        [
            f"【工单编号】{n}:请在五日内办结 please answer within {n} days. {text}"
            for n, text in enumerate(texts)
        ]
    )
    assert [f"{gram:016x}" for gram in frames.grams[0].tolist()] == GOLDEN


GOLDEN = [
    "0988608453939ea7", "170e468009ac6ce5", "18412bb907c12315", "2dfa645a83fa18dd",
    "38ad41f6d833aaf7", "47e2a96daed05baf", "587e629a3ce14153", "630fcfcc902e8e5d",
    "6dad16186819b687", "706ee724e88a1cdf", "936e2c279190e81d", "b310c2760de136a5",
    "becc28f74c73d0f1", "e733dc2aa1271527", "eaf290d380058f33", "f0b3b9766a661723",
]  # fmt: skip
