"""P2: shares of retweets and of similar posts, thresholds, lengths, repeats, and posts of each user.

The posts are real (`tweets-en`, `weibo-reposts`). They name no users, and none is an official retweet, so
these are generated beside them, and the output says so. Whether pairs are similar was judged by reading:
`p2_labels.csv` has their keys and the judgement, no text.
"""

import csv
import gzip
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.config import watched_table
from db_dedup.flow.pipeline import FingerprintedRows, Fingerprinter
from db_dedup.flow.rows.digest import NO_FEATURES_DIGEST
from db_dedup.flow.text.normalise import normalise_batch
from db_dedup.records.forms import FORMS, OFFICIAL, REPLY, UNOFFICIAL

THRESHOLDS: Final = range(11)
RADIUS: Final = 3
_SEED: Final = 2
_BLOCK: Final = 512
_OFFICIAL_SHARE: Final = 0.1
_LABELS: Final = Path(__file__).with_name("p2_labels.csv")
# As P2 does: words as a set, 64 bits, three of them, no comparison of the texts.
_SETTINGS: Final = {
    "columns": {"body": 1},
    "preset": "strict",
    "normaliser": "tweet",
    "term_frequency": "set",
    "stop_words": "keep",
}

Key = str
Label = tuple[str, Key, Key]


@dataclass(frozen=True)
class Sizes:
    """At most so many posts of each language, and so many generated users."""

    english: int = 20_000
    chinese: int = 40_000
    users: int = 5_000


SMALL = Sizes(english=300, chinese=300, users=50)


@dataclass(frozen=True)
class Posts:
    """Real posts of one language and their keys, which say where each was read."""

    language: str
    keys: list[Key]
    texts: list[str]


def run(data: Path | None, sizes: Sizes = Sizes()) -> None:
    """Print the figures of P2 for each language."""
    assert data is not None
    fingerprinter = Fingerprinter(watched_table("posts", _SETTINGS).recipe)
    labels = read_labels(_LABELS)
    for posts in (read_english_posts(data, sizes.english), read_chinese_posts(data, sizes.chinese)):
        print(f"\n{posts.language}: {len(posts.texts):,} posts, real")
        done = fingerprinter.fingerprint([[text] for text in posts.texts])
        report_forms(done)
        report_official(posts, fingerprinter)
        report_thresholds(posts, done, labels)
        report_lengths(posts)
        report_repeats(done)
        report_users(len(posts.texts), sizes.users)


def read_english_posts(data: Path, most: int) -> Posts:
    """tweets-en: a sample of all files."""
    rows = [
        (f"{name}:{number}", row["text"])
        for name in ("airline", "apple")
        for number, row in enumerate(_rows(data / "tweets-en" / f"{name}_tweets.csv.gz"))
    ]
    return _sampled("English", rows, most)


def read_chinese_posts(data: Path, most: int) -> Posts:
    """weibo-reposts: a sample."""
    rows = _rows(data / "weibo-reposts" / "reposts_sample.csv.gz")
    return _sampled("Chinese", [(row["id"], row["text"]) for row in rows], most)


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def _sampled(language: str, rows: list[tuple[Key, str]], most: int) -> Posts:
    if len(rows) > most:
        rows = sorted(random.Random(_SEED).sample(rows, most))
    return Posts(language, [key for key, _ in rows], [text for _, text in rows])


def read_labels(path: Path) -> dict[Label, bool]:
    """Return (language, key, key) -> whether a reader judged the two posts to be one message."""
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        return {
            (row["language"], row["key_a"], row["key_b"]): row["similar"] == "1"
            for row in csv.DictReader(file)
        }


def report_forms(done: FingerprintedRows) -> None:
    """Print the share of each form, and of posts that repeat an earlier one."""
    count = len(done.digests)
    forms = Counter(done.forms.tolist())
    print(
        "share of posts: "
        + ", ".join(f"{FORMS[n]} {forms[n] / count:.1%}" for n in (OFFICIAL, UNOFFICIAL, REPLY))
    )
    distinct, values = first_posts(done)
    has_features = sum(digest != NO_FEATURES_DIGEST for digest in done.digests)
    copies = has_features - len({d for d in done.digests if d != NO_FEATURES_DIGEST})
    pairs = close_pairs(values, RADIUS)
    similar = np.unique(pairs[1]).size
    print(
        f"repeat an earlier post after cleaning: {copies / count:.1%} exactly, and "
        f"{similar / count:.1%} more within {RADIUS} bits; "
        f"no text is left of {(count - has_features) / count:.1%}, "
        f"{distinct.size:,} distinct texts have enough words"
    )


def report_official(posts: Posts, fingerprinter: Fingerprinter) -> None:
    """Generate official retweets beside the posts; print how many are told apart and equal their original."""
    chance = random.Random(_SEED)
    chosen = chance.sample(range(len(posts.texts)), int(_OFFICIAL_SHARE * len(posts.texts)))
    generated = [posts.texts[i] + _retweeted_by(chance) for i in chosen]
    done = fingerprinter.fingerprint([[text] for text in generated])
    originals = fingerprinter.fingerprint([[posts.texts[i]] for i in chosen])
    told = int(np.count_nonzero(done.forms == OFFICIAL))
    equal = sum(one == other for one, other in zip(done.digests, originals.digests, strict=True))
    print(
        f"official retweets, generated: {len(generated):,}; told apart {told:,}, "
        f"equal to their original {equal:,}"
    )


def _retweeted_by(chance: random.Random) -> str:
    names = [f"User {chance.randrange(10_000)}" for _ in range(chance.randint(1, 4))]
    return (
        "".join(f"\nRetweeted by {name}" for name in names)
        if chance.random() < 0.3
        else ("\nRetweeted by " + ", ".join(names))
    )


def first_posts(done: FingerprintedRows) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Return (int64[n] the first post of each text with enough words, uint64[n] their fingerprints)."""
    first = {digest: i for i, digest in reversed(list(enumerate(done.digests)))}
    rows = np.array(sorted(first.values()), np.int64)
    rows = rows[done.has_fingerprint[rows]]
    return rows, done.fingerprints[rows]


def close_pairs(values: NDArray[np.uint64], radius: int) -> NDArray[np.int64]:
    """Return int64[3, p]: two numbers of fingerprints, the smaller first, and their distance in bits.

    By comparing all with all.
    """
    found = [np.empty((3, 0), np.int64)]
    for start in range(0, values.size, _BLOCK):
        block = values[start : start + _BLOCK]
        distances = np.bitwise_count(block[:, None] ^ values[None, start:])
        one, other = np.nonzero(distances <= radius)
        is_new = one < other
        one, other = one[is_new], other[is_new]
        found.append(np.stack([one + start, other + start, distances[one, other].astype(np.int64)]))
    return np.concatenate(found, axis=1)


def report_thresholds(posts: Posts, done: FingerprintedRows, labels: dict[Label, bool]) -> None:
    """Print how many pairs of distinct texts each threshold adds, and how many of a sample are similar."""
    rows, values = first_posts(done)
    left, right, distances = close_pairs(values, THRESHOLDS[-1])
    counts = np.bincount(distances, minlength=len(THRESHOLDS))
    judged: dict[int, list[bool]] = {threshold: [] for threshold in THRESHOLDS}
    for a, b, distance in zip(rows[left].tolist(), rows[right].tolist(), distances.tolist(), strict=True):
        label = labels.get((posts.language, posts.keys[a], posts.keys[b]))
        if label is not None:
            judged[distance].append(label)
    print(f"{'bits':>4} {'added pairs':>12} {'all pairs':>10} {'judged':>7} {'similar':>8}")
    for threshold in THRESHOLDS:
        sample = judged[threshold]
        share = f"{sum(sample) / len(sample):.2f}" if sample else "-"
        total = counts[: threshold + 1].sum()
        print(f"{threshold:>4} {counts[threshold]:>12,} {total:>10,} {len(sample):>7} {share:>8}")


def sample_pairs(posts: Posts, done: FingerprintedRows, each: int) -> list[tuple[Key, Key, int, str, str]]:
    """Return (key, key, distance, text, text) of at most so many pairs of each distance, to be judged."""
    rows, values = first_posts(done)
    pairs = close_pairs(values, THRESHOLDS[-1])
    chance = random.Random(_SEED)
    chosen = []
    for threshold in THRESHOLDS[1:]:
        own = pairs[:, pairs[2] == threshold].T.tolist()
        for one, other, distance in chance.sample(own, min(each, len(own))):
            a, b = int(rows[one]), int(rows[other])
            chosen.append((posts.keys[a], posts.keys[b], distance, posts.texts[a], posts.texts[b]))
    return chosen


def report_lengths(posts: Posts) -> None:
    """Print the lengths of posts before and after cleaning, in characters."""
    before = np.array([len(text) for text in posts.texts])
    after = np.array([len(text) for text in normalise_batch(posts.texts, "tweet")])
    edges = [*range(0, 141, 20), 1 << 30]
    shares = [np.histogram(lengths, edges)[0] / lengths.size for lengths in (before, after)]
    print("characters   before   after")
    for i, first in enumerate(edges[:-1]):
        last = f"to {edges[i + 1] - 1}" if i + 2 < len(edges) else "on"
        print(f"{first:>3} {last:<8} {shares[0][i]:>6.1%} {shares[1][i]:>7.1%}")


def report_repeats(done: FingerprintedRows) -> None:
    """Print how many messages are repeated how often, by powers of two, and the slope of both logarithms."""
    sizes = Counter(digest for digest in done.digests if digest != NO_FEATURES_DIGEST).values()
    _report_log_log("a message is posted n times", "messages", list(sizes))


def report_users(post_count: int, user_count: int) -> None:
    """Print how many posts the users have: the data names none, so each post gets a generated one."""
    chance = random.Random(_SEED)
    weights = [1 / rank for rank in range(1, user_count + 1)]
    users = Counter(chance.choices(range(user_count), weights, k=post_count))
    _report_log_log("a user has n posts (users generated by Zipf's law)", "users", list(users.values()))


def _report_log_log(title: str, counted: str, sizes: Sequence[int]) -> None:
    steps = Counter(size.bit_length() - 1 for size in sizes)
    print(f"{title}: " + ", ".join(f"{1 << step}+: {steps[step]:,}" for step in sorted(steps)))
    by_size = Counter(sizes)
    if len(by_size) > 1:
        logs = np.log(np.array(sorted(by_size.items()), np.float64))
        print(f"slope of log {counted} by log n: {np.polyfit(logs[:, 0], logs[:, 1], 1)[0]:.2f}")
