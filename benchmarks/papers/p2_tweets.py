"""P2: shares of retweets and of similar posts, thresholds, lengths, repeats, and posts of each user.

The posts are real (`tweets-en`, `weibo-reposts`). They name no users, and none is an official retweet, so
these are generated beside them, and the output says so. Whether pairs are similar was judged by reading a
random sample of the pairs of each distance: `p2_labels.csv` has their keys and the judgement, no text.
"""

import csv
import gzip
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.papers.report import print_finding
from benchmarks.plot import line_svg, log_log_svg
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
PLOTS: Final = Path(__file__).parents[2] / "docs" / "explanation"
_SIMILAR_IN_P2: Final = {"English": 0.09, "Chinese": 0.07}
_ABOUT: Final = 1.25
"""A share counts as that of the paper if it is at most so many times larger or smaller."""
_POSTS: Final = "posts of a message, from each power of two on"
_USERS: Final = "posts of a user, from each power of two on"
_LENGTHS: Final = "characters, in classes of 20; the last class has no end"
_LONGEST: Final = 140
_SHORT: Final = 20
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


@dataclass(frozen=True)
class Found:
    """What is compared with P2.

    Attributes:
        similar: share of the posts that repeat an earlier one, exactly or within the radius.
        all_right: the largest threshold up to which every judged pair is similar.
        before: first length of a class -> share of the posts that have such a length, before cleaning.
        after: the same after cleaning.
        repeats: power of two -> messages that have so many posts, and less than twice of it.
        slope: of its two logarithms; None if no message is repeated.
        users: power of two -> generated users that have so many posts, and less than twice of it.
    """

    similar: float
    all_right: int
    before: dict[int, float]
    after: dict[int, float]
    repeats: dict[int, float]
    slope: float | None
    users: dict[int, float]


def run(data: Path | None, sizes: Sizes = Sizes(), plots: Path | None = None) -> None:
    """Print the figures of P2 for each language, and draw them into the folder `plots`.

    Without a folder, the figures of the usual sizes are drawn for the docs.
    """
    assert data is not None
    if sizes == Sizes():
        plots = plots or PLOTS
    found: dict[str, Found] = {}
    fingerprinter = Fingerprinter(watched_table("posts", _SETTINGS).recipe)
    labels = read_labels(_LABELS)
    for posts in (read_english_posts(data, sizes.english), read_chinese_posts(data, sizes.chinese)):
        print(f"\n{posts.language}: {len(posts.texts):,} posts, real")
        done = fingerprinter.fingerprint([[text] for text in posts.texts])
        similar = report_forms(done)
        report_official(posts, fingerprinter)
        all_right = report_thresholds(posts, done, labels)
        before, after = report_lengths(posts)
        repeats, slope = report_repeats(done)
        users = report_users(len(posts.texts), sizes.users)
        found[posts.language] = Found(similar, all_right, before, after, repeats, slope, users)
    if plots is not None:
        draw(found, plots)
    print_findings(found)


def draw(found: dict[str, Found], folder: Path) -> None:
    """Draw the three figures of P2."""
    repeats = {language: each.repeats for language, each in found.items()}
    users = {f"{language}, generated": each.users for language, each in found.items()}
    lengths = {
        f"{language}, {when}": {first: 100 * share for first, share in shares.items()}
        for language, each in found.items()
        for when, shares in (("before", each.before), ("after", each.after))
    }
    title = "Posts by length, before and after cleaning"
    for name, svg in (
        ("lengths", line_svg(lengths, title, _LENGTHS, "% of the posts")),
        ("repeats", log_log_svg(repeats, "Messages by repeats", _POSTS, "messages")),
        ("users", log_log_svg(users, "Generated users by posts", _USERS, "users")),
    ):
        plot = folder / f"papers-p2-{name}.svg"
        plot.write_text(svg, encoding="utf-8")
        print(f"drawn in {plot}")


def print_findings(found: dict[str, Found]) -> None:
    """Print what P2 found, and what was found here."""
    for language, share in _SIMILAR_IN_P2.items():
        ours = found[language].similar
        print_finding(
            f"{share:.0%} of the tweets in {language} are similar to an earlier one",
            f"{ours:.1%} of the posts",
            max(ours, share) <= _ABOUT * min(ours, share),
            "it depends on what the posts are about: comments on a few posts repeat more",
        )
    limits = {language: each.all_right for language, each in found.items()}
    print_finding(
        "of the thresholds 1 to 10, three bits is the best",
        "every judged pair is similar up to "
        + ", ".join(f"{limit} bits ({language})" for language, limit in limits.items()),
        min(limits.values()) == RADIUS,
        "the largest threshold at which no judged pair is wrong in either language",
    )
    print_finding(
        f"cleaning makes posts shorter: more short ones, fewer of {_LONGEST} characters",
        "; ".join(
            f"{language}: below {_SHORT} characters {each.before[0]:.1%}, then {each.after[0]:.1%}; "
            f"{_LONGEST} or more {each.before[_LONGEST]:.1%}, then {each.after[_LONGEST]:.1%}"
            for language, each in found.items()
        ),
        all(
            each.before[0] < each.after[0] and each.before[_LONGEST] > each.after[_LONGEST]
            for each in found.values()
        ),
        "names, links and forms are left out",
    )
    slopes = {language: each.slope for language, each in found.items() if each.slope is not None}
    print_finding(
        "repeats of a message: many with few, few with many, a line in both logarithms",
        ", ".join(f"slope {slope:.1f} ({language})" for language, slope in slopes.items()) or "no repeats",
        all(slope < 0 for slope in slopes.values()) if slopes else None,
        "the shape is the same; the paper does not give its slope",
    )
    print_finding(
        "tweets by user: many users with few, few with many",
        "the users are generated",
        None,
        "the posts name no users",
    )


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


def report_forms(done: FingerprintedRows) -> float:
    """Print the share of each form, and of posts that repeat an earlier one; return the latter."""
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
    return (copies + similar) / count


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


def report_thresholds(posts: Posts, done: FingerprintedRows, labels: dict[Label, bool]) -> int:
    """Print how many pairs of distinct texts each threshold adds, and how many of a sample are similar.

    Return the largest threshold up to which the whole sample is similar.
    """
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
    return next((n for n in THRESHOLDS if not all(judged[n])), len(THRESHOLDS)) - 1


def report_lengths(posts: Posts) -> list[dict[int, float]]:
    """Print the lengths of posts before and after cleaning, in characters.

    Return for both: first length of a class -> share of the posts in it.
    """
    before = np.array([len(text) for text in posts.texts])
    after = np.array([len(text) for text in normalise_batch(posts.texts, "tweet")])
    edges = [*range(0, _LONGEST + 1, _SHORT), 1 << 30]
    shares = [np.histogram(lengths, edges)[0] / lengths.size for lengths in (before, after)]
    print("characters   before   after")
    for i, first in enumerate(edges[:-1]):
        last = f"to {edges[i + 1] - 1}" if i + 2 < len(edges) else "on"
        print(f"{first:>3} {last:<8} {shares[0][i]:>6.1%} {shares[1][i]:>7.1%}")
    return [dict(zip(edges, each.tolist(), strict=False)) for each in shares]


def report_repeats(done: FingerprintedRows) -> tuple[dict[int, float], float | None]:
    """Print how many messages are repeated how often, by powers of two, and the slope of both logarithms.

    Return (power of two -> how many messages have so many posts and less than twice of it, slope).
    """
    sizes = Counter(digest for digest in done.digests if digest != NO_FEATURES_DIGEST).values()
    slope = _report_log_log("a message is posted n times", "messages", list(sizes))
    return _by_powers_of_two(sizes), slope


def report_users(post_count: int, user_count: int) -> dict[int, float]:
    """Print how many posts the users have: the data names none, so each post gets a generated one.

    Return power of two -> how many users have so many posts and less than twice of it.
    """
    chance = random.Random(_SEED)
    weights = [1 / rank for rank in range(1, user_count + 1)]
    users = Counter(chance.choices(range(user_count), weights, k=post_count))
    _report_log_log("a user has n posts (users generated by Zipf's law)", "users", list(users.values()))
    return _by_powers_of_two(users.values())


def _by_powers_of_two(sizes: Iterable[int]) -> dict[int, float]:
    return {1 << step: float(count) for step, count in _by_powers(sizes).items()}


def _by_powers(sizes: Iterable[int]) -> Counter[int]:
    """Count the sizes from each power of two on: n -> how many have from 2**n to less than twice of it."""
    return Counter(size.bit_length() - 1 for size in sizes)


def _report_log_log(title: str, counted: str, sizes: Sequence[int]) -> float | None:
    steps = _by_powers(sizes)
    print(f"{title}: " + ", ".join(f"{1 << step}+: {steps[step]:,}" for step in sorted(steps)))
    by_size = Counter(sizes)
    if len(by_size) < 2:
        return None
    logs = np.log(np.array(sorted(by_size.items()), np.float64))
    slope = float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])
    print(f"slope of log {counted} by log n: {slope:.2f}")
    return slope
