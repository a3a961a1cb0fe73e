"""Frames: planted forms around unlike texts, what counts as frame in real texts, and labelled petitions."""

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from benchmarks.datasets import read_gold_pairs, read_petitions, read_texts
from benchmarks.forms import PLANTINGS, TEXTS, plant, unlike_petitions
from benchmarks.materials import Material
from benchmarks.peer_packages import PEERS
from benchmarks.petitions import find_pairs
from benchmarks.scores import Pair, score
from db_dedup.config import watched_table
from db_dedup.flow.text.compared import compared_columns
from db_dedup.flow.text.frames import frame_spans, measure_frames, without_frames
from db_dedup.flow.text.normalise import normalise_batch
from db_dedup.flow.text.segment import cut_in_batches, make_segmenter
from db_dedup.records.frames import NO_FRAMES, FrameList
from db_dedup.records.recipe import RecipeColumn

_TEXT = [RecipeColumn("text", "text", 1)]
_SAMPLE = 4_000
_TIMED = 4_000
_SOURCES = (
    ("cn-law-articles/articles.csv.gz", "text"),
    ("cn-reviews/reviews.csv.gz", "review"),
    ("weibo-reposts/reposts_sample.csv.gz", "text"),
    ("cofacts-replies-2019/replies.csv.gz", "text"),
    ("cfpb-complaints/complaints_full_columns.csv.gz", "Consumer complaint narrative"),
    ("us-wethepeople-petitions/petitions.csv.gz", "body"),
    ("tweets-en/airline_tweets.csv.gz", "text"),
    ("sms-spam/sms.csv", "message"),
    ("petitions-gold/petitions.csv.gz", "content"),
)
_FOLDS = 5


def run(data: Path | None) -> None:
    """Print three tables."""
    assert data is not None
    _print_forms(data)
    _print_shares(data)
    _print_petitions(data)


def _print_forms(data: Path) -> None:
    texts, letter = unlike_petitions(data, lambda raw: _pairs(raw, NO_FRAMES))
    characters = [c for text in texts[:50] for c in text if c.isalpha()]
    peers = [peer for peer in PEERS if peer.module in ("datasketch", "rensa") and not peer.missing()]
    print(f"{TEXTS} unlike petitions and copies of a letter with 1 to 10 edits, in planted forms")
    print("false pairs, of how many possible ones; share of the letter's pairs that is found")
    names = ["balanced", "without frames", *(f"{p.name.split()[0]} {p.recommended}" for p in peers)]
    print(f"{'':<26} {'possible':>9}" + "".join(f"{name:>24}" for name in names))
    for planting in PLANTINGS:
        material = plant(planting, texts, letter, characters)
        raw = [row["text"] for row in material.rows]
        counts = Counter(normalise_batch(raw))
        frames = measure_frames(_TEXT, [list(counts)], repeats=list(counts.values()))
        found = [_pairs(raw, frames), _pairs(raw, NO_FRAMES)]
        found += [peer.find(material, peer.recommended) for peer in peers]
        possible = len(raw) * (len(raw) - 1) // 2 - len(material.wanted)
        print(f"{planting.name:<26} {possible:>9,}" + "".join(_figures(each, material) for each in found))


def _figures(found: set[Pair], material: Material) -> str:
    result = score(found, material.wanted)
    return f"{result.found - result.right:>16,} {result.recall:>7.3f}"


def _pairs(raw: Sequence[str], frames: FrameList) -> set[Pair]:
    watched = watched_table("texts", {"columns": {"text": 1}})
    rows: list[dict[str, object]] = [{"id": number, "text": text} for number, text in enumerate(raw)]
    found = find_pairs(rows, watched, frames)
    return {(min(pair), max(pair)) for pair in (tuple(map(int, keys)) for keys in found)}


def _print_shares(data: Path) -> None:
    print(f"\nshare of the characters that count as frame; the list is measured on {_SAMPLE:,} rows or fewer")
    print(f"{'':<76} us a row:")
    head = f"{'':<26} {'rows':>8} {'grams':>7} {'share':>7} {'framed':>7} {'measuring':>10}"
    print(f"{head} {'leaving out':>11} {'segmenting':>10}")
    segmenter = make_segmenter("jieba")
    for path, column in _SOURCES:
        texts = list(dict.fromkeys(normalise_batch(read_texts(data / path, column))))
        sample = random.Random(1).sample(texts, min(_SAMPLE, len(texts)))
        began = time.process_time()
        frames = measure_frames(_TEXT, [sample])
        measuring = time.process_time() - began
        spans = [frame_spans(text, 0, frames) for text in sample]
        cut = sum(end - start for each in spans for start, end in each)
        timed = texts[:_TIMED]
        leaving_out = _micros(timed, partial(_leave_out, frames))
        segmenting = _micros(timed, lambda rows: list(cut_in_batches(segmenter, rows)))
        print(
            f"{path.split('/')[0]:<26} {len(sample):>8,} {sum(map(len, frames.grams)):>7,} "
            f"{cut / sum(map(len, sample)):>7.3%} {sum(map(bool, spans)) / len(spans):>7.2%} "
            f"{measuring:>8.2f} s {leaving_out:>11.1f} {segmenting:>10.1f}"
        )


def _leave_out(frames: FrameList, texts: list[str]) -> None:
    without_frames([texts], frames)


def _micros(texts: list[str], work: Callable[[list[str]], object]) -> float:
    """CPU microseconds a text."""
    work(texts[:10])
    began = time.process_time()
    work(texts)
    return (time.process_time() - began) / len(texts) * 1e6


def _print_petitions(data: Path) -> None:
    rows, gold = read_petitions(data), read_gold_pairs(data)
    watched = watched_table("petitions", {"columns": {"title": 1, "content": 1}})
    columns = compared_columns(
        watched.recipe.columns, "plain", [[str(row[name]) for name in watched.columns] for row in rows]
    )
    frames = measure_frames(watched.recipe.columns, columns)
    wanted = {pair for pair, label in gold.items() if label == "V"}
    print(f"\n{len(rows):,} petitions, {len(wanted)} near-verbatim pairs (V)")
    print(f"{'':<26} {'found':>7} {'precision':>9} {'recall':>7} {'F1':>6}   F1 in {_FOLDS} folds over pairs")
    for name, own in (("balanced", frames), ("without frames", NO_FRAMES)):
        found = find_pairs(rows, watched, own)
        folds = [_f1(found, wanted, fold) for fold in range(_FOLDS)]
        right = len(found & wanted)
        print(
            f"{name:<26} {len(found):>7,} {right / len(found):>9.3f} {right / len(wanted):>7.3f} "
            f"{_f1(found, wanted, None):>6.3f}   " + " ".join(f"{f1:.3f}" for f1 in folds)
        )


def _f1(found: set[frozenset[str]], wanted: set[frozenset[str]], fold: int | None) -> float:
    """F1 of the pairs of one fold: by the smaller key of a pair."""
    if fold is not None:
        found = {pair for pair in found if min(map(int, pair)) % _FOLDS == fold}
        wanted = {pair for pair in wanted if min(map(int, pair)) % _FOLDS == fold}
    return 2 * len(found & wanted) / (len(found) + len(wanted))
