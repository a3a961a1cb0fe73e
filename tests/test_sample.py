"""The sample petitions: the truth about them holds, and chance makes no further duplicates."""

import hashlib
import logging
import os
import re
import subprocess
import sys
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import datetime
from itertools import combinations
from random import Random

import jieba
import numpy as np
import pytest
from scipy import sparse

from db_dedup.sample import Petition, Sample, TruePair, generate_petitions
from db_dedup.sample.edits import KINDS
from db_dedup.sample.generator import LOOK_ALIKES
from db_dedup.sample.material import load_subjects
from db_dedup.sample.slots import Slots

jieba.setLogLevel(logging.WARNING)

Pairs = list[tuple[Petition, Petition]]


@pytest.fixture(scope="module")
def sample() -> Sample:
    return generate_petitions(3000)


@pytest.fixture(scope="module")
def pairs_of_kind(sample: Sample) -> dict[str, Pairs]:
    by_kind: dict[str, Pairs] = defaultdict(list)
    for pair in sample.pairs + sample.look_alikes:
        by_kind[pair.kind].append((sample.petitions[pair.id_a - 1], sample.petitions[pair.id_b - 1]))
    return by_kind


def families_of(sample: Sample) -> list[set[int]]:
    """Returns the connected components of the true pairs."""
    family: dict[int, set[int]] = {}
    for pair in sample.pairs:
        joined = family.get(pair.id_a, {pair.id_a}) | family.get(pair.id_b, {pair.id_b})
        family.update(dict.fromkeys(joined, joined))
    return list({min(members): members for members in family.values()}.values())


def bare(text: str) -> str:
    """Returns the text with widths made equal and white space dropped."""
    return "".join(unicodedata.normalize("NFKC", text).split())


def edit_distance(a: str, b: str) -> int:
    row = list(range(len(b) + 1))
    for i, char in enumerate(a, start=1):
        diagonal, row[0] = row[0], i
        for j, other in enumerate(b, start=1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (char != other))
    return row[-1]


def word_jaccard(petitions: list[Petition]) -> sparse.coo_array:
    """Returns the similarity of all pairs that share a word, each once, row before column."""
    vocabulary: dict[str, int] = {}
    cells = [
        (row, vocabulary.setdefault(word, len(vocabulary)))
        for row, petition in enumerate(petitions)
        for word in dict.fromkeys(jieba.cut(f"{petition.title}\n{petition.content}"))
        if re.search(r"\w", word)
    ]
    rows, columns = np.array(cells).T
    has_word = sparse.csr_array((np.ones(len(cells), dtype=np.int32), (rows, columns)))
    shared = sparse.triu(has_word @ has_word.T, k=1).tocoo()
    words = has_word.sum(axis=1)
    jaccard = shared.data / (words[shared.row] + words[shared.col] - shared.data)
    return sparse.coo_array((jaccard, (shared.row, shared.col)), shape=shared.shape)


def test_equal_arguments_give_equal_samples() -> None:
    assert generate_petitions(300, seed=7) == generate_petitions(300, seed=7)
    assert generate_petitions(300, seed=7).petitions != generate_petitions(300, seed=8).petitions


def test_another_process_with_another_hash_seed_gives_the_same() -> None:
    digest = "import hashlib, sys; from db_dedup.sample import generate_petitions as g;"
    digest += "sys.stdout.write(hashlib.sha256(repr(g(200, seed=3)).encode()).hexdigest())"
    environment = os.environ | {"PYTHONHASHSEED": "12345", "PYTHONPATH": os.pathsep.join(sys.path)}
    other = subprocess.run([sys.executable, "-c", digest], env=environment, check=True, capture_output=True)
    here = hashlib.sha256(repr(generate_petitions(200, seed=3)).encode()).hexdigest()
    assert other.stdout.decode() == here


@pytest.mark.parametrize("count", [0, 1, 2, 10, 5000])
def test_sizes(count: int) -> None:
    sample = generate_petitions(count)
    assert [petition.id for petition in sample.petitions] == list(range(1, count + 1))
    assert all(petition.title and petition.content.strip() for petition in sample.petitions)


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.9])
def test_the_asked_share_of_petitions_repeats_another(share: float) -> None:
    families = families_of(generate_petitions(1000, duplicate_share=share))
    assert sum(len(family) - 1 for family in families) == int(1000 * share)


@pytest.mark.parametrize(("count", "share"), [(-1, 0.2), (10, -0.1), (10, 1.0)])
def test_impossible_arguments_are_refused(count: int, share: float) -> None:
    with pytest.raises(ValueError, match="must be"):
        generate_petitions(count, duplicate_share=share)


def test_truth_is_complete(sample: Sample) -> None:
    told = {(pair.id_a, pair.id_b) for pair in sample.pairs}
    assert len(told) == len(sample.pairs)
    for family in families_of(sample):
        for a, b in combinations(sorted(family), 2):
            assert ((a, b) in told) != ((b, a) in told)


def test_the_earlier_petition_stands_first(sample: Sample) -> None:
    def arrival(number: int) -> tuple[datetime, int]:
        petition = sample.petitions[number - 1]
        return petition.created_at, petition.id

    every_pair: list[TruePair] = sample.pairs + sample.look_alikes
    assert all(arrival(pair.id_a) < arrival(pair.id_b) for pair in every_pair)


def test_ids_follow_arrival_only_roughly(sample: Sample) -> None:
    arrivals = [petition.created_at for petition in sample.petitions]
    assert arrivals != sorted(arrivals)
    assert np.corrcoef([arrival.timestamp() for arrival in arrivals], range(len(arrivals)))[0, 1] > 0.99
    assert all(arrival.microsecond == 0 and arrival.tzinfo is None for arrival in arrivals)


def test_every_kind_occurs(sample: Sample) -> None:
    assert {pair.kind for pair in sample.pairs} == set(KINDS)
    assert {pair.kind for pair in sample.look_alikes} == set(LOOK_ALIKES)


def test_look_alikes_are_no_duplicates(sample: Sample) -> None:
    told = {(pair.id_a, pair.id_b) for pair in sample.pairs}
    assert not told & {(pair.id_a, pair.id_b) for pair in sample.look_alikes}


def test_joint_letters_have_three_to_forty_petitioners(sample: Sample) -> None:
    joint = {pair.id_a for pair in sample.pairs if pair.kind == "joint"}
    sizes = {len(family) for family in families_of(sample) if family & joint}
    assert min(sizes) >= 3
    assert 10 < max(sizes) <= 40


def middle_stays(a: str, b: str) -> bool:
    return a[len(a) // 2 - 10 : len(a) // 2 + 10] in b


def dates_aside(text: str) -> str:
    return re.sub(r"(\d{4})[年./-]0?(\d{1,2})[月./-]0?(\d{1,2})日?", r"\1 \2 \3", text)


def phones(text: str) -> set[str]:
    return set(re.findall(r"1\d{10}", bare(text)))


KIND_CHECKS: dict[str, Callable[[str, str], bool]] = {
    "exact": lambda a, b: a == b,
    "whitespace": lambda a, b: bare(a) == bare(b),
    # Two copies of one original differ by the edits of both.
    "typo": lambda a, b: edit_distance(a, b) <= 10,
    "joint": lambda a, b: len(phones(a) ^ phones(b)) == 2 and edit_distance(a, b) < 40,
    "salutation": middle_stays,
    "masked": lambda a, b: "****" in bare(b) and edit_distance(a, b) < 40,
    "contained": lambda a, b: bare(a) in bare(b) or bare(b) in bare(a),
    "followup": middle_stays,
    "dates": lambda a, b: dates_aside(bare(a)) == dates_aside(bare(b)),
    "reordered": lambda a, b: Counter(a) == Counter(b),
    "reference": lambda a, b: middle_stays(a, b) and re.search(r"\d{14}", bare(b)) is not None,
    "another_place": lambda a, b: len(phones(a) & phones(b)) == 0 and edit_distance(a, b) < len(a) / 2,
    "same_matter": lambda a, b: edit_distance(a, b) > len(a) / 2,
}


@pytest.mark.parametrize("kind", [*KINDS, *LOOK_ALIKES])
def test_each_kind_does_what_it_says(kind: str, pairs_of_kind: dict[str, Pairs]) -> None:
    shortest = sorted(pairs_of_kind[kind], key=lambda pair: len(pair[0].content))[:30]
    texts = [(a.content, b.content) for a, b in shortest]
    assert len(texts) >= 10
    assert [pair for pair in texts if not KIND_CHECKS[kind](*pair)] == []
    # Two copies of one original may come out equal.
    assert kind == "exact" or sum(a != b for a, b in texts) > 0.8 * len(texts)


@pytest.mark.parametrize("kind", ["exact", "whitespace", "typo", "same_matter"])
def test_these_kinds_keep_the_place(kind: str, pairs_of_kind: dict[str, Pairs]) -> None:
    assert all(a.region == b.region for a, b in pairs_of_kind[kind] if a.region and b.region)


def test_a_letter_about_another_place_names_that_place(pairs_of_kind: dict[str, Pairs]) -> None:
    for a, b in pairs_of_kind["another_place"]:
        if a.region and b.region:
            assert a.region in bare(a.content)
            assert b.region in bare(b.content)
            assert a.region != b.region


def test_independent_petitions_are_dissimilar() -> None:
    sample = generate_petitions(1500, seed=2)
    similar = word_jaccard(sample.petitions)
    excepted = {(pair.id_a, pair.id_b) for pair in sample.pairs}
    excepted |= {(pair.id_a, pair.id_b) for pair in sample.look_alikes if pair.kind == "another_place"}
    found = [
        (int(row) + 1, int(column) + 1, float(jaccard))
        for row, column, jaccard in zip(similar.row, similar.col, similar.data, strict=True)
        if jaccard >= 0.45
    ]
    by_chance = [(a, b, jaccard) for a, b, jaccard in found if not {(a, b), (b, a)} & excepted]
    assert len(found) > 300
    assert len(by_chance) <= 2, by_chance


def test_lengths_and_dirt_are_those_of_real_petitions(sample: Sample) -> None:
    lengths = [len(petition.content.strip()) for petition in sample.petitions]
    assert min(lengths) >= 8
    assert 900 < max(lengths) <= 1700
    assert sum(60 <= length <= 400 for length in lengths) > 0.7 * len(lengths)
    text = "".join(petition.content for petition in sample.petitions)
    for dirt in "\u00a0", "\u3000", "\n\t\t", "１", "，", ",", "12345", "example.":
        assert dirt in text


@pytest.mark.parametrize("column", ["region", "channel", "petitioner", "phone"])
def test_columns_are_null_now_and_then(sample: Sample, column: str) -> None:
    nulls = sum(getattr(petition, column) is None for petition in sample.petitions)
    assert 0 < nulls < len(sample.petitions) / 2


def test_all_material_can_be_used() -> None:
    rng = Random(1)
    assert len({subject.name for subject in load_subjects()}) >= 12
    for subject in load_subjects():
        slots = Slots(rng, subject, datetime(2024, 2, 29, 9))
        for pool, templates in subject.pools.items():
            for template in templates * 5:
                line = slots.fill(template.choose(rng))
                assert not re.search(r"[(){}|]|，，|。。", line), (subject.name, line)
                if pool == "openings":
                    assert slots["district"] in line, (subject.name, line)
