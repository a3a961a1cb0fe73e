"""P3: exact copies by Bloom filter and trie, then SimHash of shingles, pairwise.

The texts are made up: numbers of eleven digits for the exact stages, since only their number and their copies
matter there; beginnings of made-up petitions for SimHash.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time

import numpy as np
from numpy.typing import NDArray

from benchmarks.papers.report import pieces_of_all_pairs, print_finding
from benchmarks.plot import line_svg, log_log_svg
from db_dedup.flow.text.normalise import normalise_batch
from db_dedup.methods import (
    METHODS,
    SEGMENTERS,
    BloomFilter,
    Compare,
    DigitTrie,
    EitherBitFilter,
    SeenTexts,
    cityhash64,
    cut_corpus,
    shingles,
)
from db_dedup.sample import generate_petitions

EITHER, BOTH, TRIE = "Bloom, either bit", "Bloom, both bits", "digit trie"
P3_BITS = 50_000
P3_TEXTS = 2_500_000
_SMALL_RATE = 0.001
_SIZES_OF = {
    EITHER: f"{EITHER}, m = {P3_BITS:,}",
    BOTH: f"{BOTH}, {_SMALL_RATE:.1%} false",
    TRIE: TRIE,
}
PLOTS = Path(__file__).parents[2] / "docs" / "explanation"
_BITS_A_TEXT = 2.885
"""Of a usual Bloom filter with two hashes: 1.44 * log2(1 / 0.25)."""
_RADIUS = 4
_WORDS = 3
_SHORT = 140
_TEN_DIGITS = 10_000_000_000


@dataclass(frozen=True)
class Sizes:
    """How many texts.

    Attributes:
        texts: whose copies are timed; P3 has 2.5 million, whose times are drawn.
        accuracy: whose answers are counted by share of distinct texts; P3 has 50,000.
        by_bits: whose answers are counted by the size of the filter; P3 has 500,000.
        pairwise: compared pairwise; P3 has 1,000, and a tenth of it first.
    """

    texts: int = 250_000
    accuracy: int = 50_000
    by_bits: int = 500_000
    pairwise: int = 1_000


SMALL = Sizes(texts=2_000, accuracy=2_000, by_bits=2_000, pairwise=100)


def run(
    data: Path | None,  # noqa: ARG001 - it needs none
    sizes: Sizes = Sizes(),
    plots: Path | None = None,
) -> None:
    """Print time and memory, accuracy, and the two stages; draw the first two into the folder `plots`.

    Without a folder, what has P3's number of texts is drawn for the docs.
    """
    usual = Sizes()
    timed = plots or (PLOTS if sizes.texts == P3_TEXTS else None)
    by_share = plots or (PLOTS if sizes.accuracy == usual.accuracy else None)
    by_bits = plots or (PLOTS if sizes.by_bits == usual.by_bits else None)
    for stage in (EitherBitFilter(), BloomFilter(9), DigitTrie()):
        stage.add(["1", "1"])  # compiled, or read from the cache
    report_time(sizes.texts, timed)
    report_shares(sizes.accuracy, by_share)
    report_bits(sizes.by_bits, by_bits)
    report_two_stages(sizes.pairwise)


def digits(count: int, distinct_share: float, seed: int = 3) -> tuple[list[str], NDArray[np.bool_]]:
    """Return (n texts, bool[n]: whether the text is a copy of an earlier one).

    Args:
        count: how many texts.
        distinct_share: the share of them that are distinct, up to one text.
        seed: of the random numbers.
    """
    rng = np.random.default_rng(seed)
    distinct = max(1, int(count * distinct_share))
    # Different by construction: multiples of a step without common factors with the modulus.
    numbers = (np.arange(distinct, dtype=np.int64) * 6_700_417) % _TEN_DIGITS
    places = np.concatenate([np.arange(distinct), rng.integers(0, distinct, count - distinct)])
    rng.shuffle(places)
    is_copy = np.ones(count, np.bool_)
    is_copy[np.unique(places, return_index=True)[1]] = False
    return [f"1{number:010d}" for number in numbers[places].tolist()], is_copy


def report_time(count: int, plots: Path | None) -> None:
    """Print and draw CPU seconds and memory of the exact stages, with 1 % of the texts distinct and 99 %."""
    print("texts of eleven digits: CPU seconds, megabytes, share of right answers")
    print(f"{'texts':>9} {'distinct':>8} {'':<30} {'seconds':>9} {'MB':>8} {'right':>7}")
    lines: dict[str, dict[int, float]] = {}
    trie_is_exact = True
    for share in (0.01, 0.99):
        for size in (count // 100, count // 10, count):
            texts, is_copy = digits(size, share)
            stages: dict[str, SeenTexts] = {
                EITHER: EitherBitFilter(P3_BITS),
                BOTH: BloomFilter(size, _SMALL_RATE),
                TRIE: DigitTrie(),
            }
            for name, stage in stages.items():
                start = process_time()
                seen = stage.add(texts)
                seconds = process_time() - start
                lines.setdefault(f"{name}, {share:.0%}", {})[size] = seconds
                right = float(np.mean(seen == is_copy))
                trie_is_exact = trie_is_exact and (name != TRIE or right == 1)
                print(
                    f"{size:>9,} {share:>8.0%} {_SIZES_OF[name]:<30} {seconds:>9.4f} "
                    f"{stage.memory_bytes / 1e6:>8.2f} {right:>7.1%}"
                )
    if plots is not None:
        title = "Bloom filters and trie, by texts and share of distinct ones"
        _draw(plots / "papers-p3-exact.svg", log_log_svg(lines, title, "texts", "CPU seconds"))
    ratios = [
        lines[f"{TRIE}, {share}"][count] / lines[f"{EITHER}, {share}"][count] for share in ("1%", "99%")
    ]
    print_finding(
        "2.5 million texts with 1 % of one kind: Bloom filter 3.53 s, trie 14.4 s, four times as long",
        f"{count:,} texts: with 1 % distinct ones the trie takes {ratios[0]:.2f} times as long as the "
        f"filter of either bit, with 99 % {ratios[1]:.2f} times",
        ratios[0] > 1.5,
        "our trie ends at the first digit that tells a text from the others, and hashes once; the filter "
        "hashes twice",
    )
    print_finding("the trie is exact", f"all answers right: {trie_is_exact}", trie_is_exact, "counted above")


def report_shares(count: int, plots: Path | None) -> None:
    """Print and draw the accuracy by share of distinct texts.

    The size of the filter is P3's for P3's number of texts, and in proportion for others.
    """
    bits = max(1, count * P3_BITS // 50_000)
    print(f"\n{count:,} texts, m = {bits:,} bits: share of right answers, and of new texts that count as new")
    _print_heading("distinct")
    rights: dict[float, tuple[float, float]] = {}
    lines: dict[str, dict[float, float]] = {}
    for share in (0.01, 0.1, 0.5, 0.9, 1.0):
        found = _print_accuracy(f"{share:.0%}", *digits(count, share), bits)
        rights[share] = found[EITHER]
        for name, (everything, new) in found.items():
            lines.setdefault(f"{name}, all", {})[100 * share] = 100 * everything
            lines.setdefault(f"{name}, new", {})[100 * share] = 100 * new
    if plots is not None:
        title = f"Right answers of Bloom filters among {count:,} texts, by share of distinct ones"
        svg = line_svg(lines, title, "% of the texts are distinct", "% of the answers are right")
        _draw(plots / "papers-p3-shares.svg", svg)
    print_finding(
        "accuracy falls to 56 % at 50,000 texts with 10 % distinct and m = 50,000",
        f"either bit: {rights[0.1][0]:.1%} of all answers are right with 10 % distinct texts, "
        f"{rights[0.1][1]:.1%} of those to new texts; with 90 % distinct {rights[0.9][0]:.1%} and "
        f"{rights[0.9][1]:.1%}",
        None,
        "the paper does not define its accuracy, and no reading tried here gives its figure",
    )
    falls = [right for right, _ in rights.values()]
    print_finding(
        "the accuracy falls with the share of distinct texts",
        ", ".join(f"{right:.1%}" for right in falls),
        falls == sorted(falls, reverse=True) and falls[0] > falls[-1],
        "only distinct texts set bits",
    )


def report_bits(count: int, plots: Path | None) -> None:
    """Print and draw the accuracy by the size of the filter, for two shares of distinct texts."""
    print(f"\n{count:,} texts: share of right answers, and of new texts that count as new")
    _print_heading("m, distinct")
    rights: dict[tuple[float, int], float] = {}
    lines: dict[str, dict[int, float]] = {}
    for share in (0.1, 0.2):
        texts, is_copy = digits(count, share)
        for paper_bits in (50_000, 160_000, 500_000, 2_000_000, 20_000_000):
            bits = max(1, paper_bits * count // 500_000)
            label = f"{bits:,}, {share:.0%}"
            found = _print_accuracy(label, texts, is_copy, bits)
            rights[share, paper_bits] = found[EITHER][0]
            for name, (everything, _) in found.items():
                lines.setdefault(f"{name}, {share:.0%}", {})[bits] = 100 * everything
    if plots is not None:
        title = f"Right answers of Bloom filters among {count:,} texts, by size and share of distinct ones"
        svg = line_svg(lines, title, "m, bits", "% of the answers are right", is_x_log=True)
        _draw(plots / "papers-p3-bits.svg", svg)
    low, high = (rights[share, 160_000] for share in (0.1, 0.2))
    print_finding(
        "500,000 texts: accuracy 90 % at m = 160,000 and 100 % at m = 20,000,000",
        f"either bit, of all answers {low:.1%} with 10 % distinct texts and {high:.1%} with 20 %; at "
        f"20,000,000 {rights[0.1, 20_000_000]:.2%} and {rights[0.2, 20_000_000]:.2%}",
        high <= 0.9 <= low and rights[0.2, 20_000_000] > 0.995,
        "the paper does not name the share of distinct texts; one between these two gives its figures",
    )


def _draw(plot: Path, svg: str) -> None:
    plot.write_text(svg, encoding="utf-8")
    print(f"drawn in {plot}")


def _print_heading(first: str) -> None:
    print(f"{first:>16} {EITHER:>20} {'new':>7} {BOTH:>20} {'new':>7}")


def _print_accuracy(
    label: str, texts: Sequence[str], is_copy: NDArray[np.bool_], bits: int
) -> dict[str, tuple[float, float]]:
    usual = BloomFilter(max(1, round(bits / _BITS_A_TEXT)), 0.25)
    stages: dict[str, SeenTexts] = {EITHER: EitherBitFilter(bits), BOTH: usual}
    rights = {}
    for name, stage in stages.items():
        is_right = stage.add(texts) == is_copy
        rights[name] = float(np.mean(is_right)), float(np.mean(is_right[~is_copy]))
    cells = " ".join(f"{everything:>20.1%} {new:>7.1%}" for everything, new in rights.values())
    print(f"{label:>16} {cells}")
    return rights


def count_close_pairs(compare: Compare, rows: int) -> int:
    """How many of all pairs are near enough."""
    distances = (compare(left, right) for left, right in pieces_of_all_pairs(rows))
    return sum(int(np.count_nonzero(some <= _RADIUS)) for some in distances)


def report_two_stages(most: int) -> None:
    """Print the CPU seconds and the pairs of the two stages one after the other."""
    print(
        f"\ntwo stages on beginnings of made-up petitions ({_SHORT} characters): trie, then SimHash of "
        f"shingles of {_WORDS} words, distance below {_RADIUS + 1}, all with all; CPU seconds"
    )
    print(
        f"{'texts':>7} {'copies':>7} {'words s':>9} {'SimHash s':>10} {'pairs s':>9} {'compared':>10} "
        f"{'found':>7}"
    )
    cut = SEGMENTERS["jieba"].load()
    # Load the dictionary and compile the kernels before the first time is taken.
    METHODS["simhash"].load()(shingles(_WORDS)(cut_corpus(["夜间施工"], cut), cityhash64))
    petitions = generate_petitions(most, duplicate_share=0.3).petitions
    texts = [text[:_SHORT] for text in normalise_batch([petition.content for petition in petitions])]
    compared, seconds = {}, {}
    for count in (most // 10, most):
        seen = DigitTrie().add(texts[:count])
        kept = [text for text, is_copy in zip(texts, seen, strict=False) if not is_copy]
        start = process_time()
        corpus = cut_corpus(kept, cut)
        words = process_time() - start
        start = process_time()
        compare = METHODS["simhash"].load()(shingles(_WORDS)(corpus, cityhash64))
        simhash = process_time() - start
        start = process_time()
        found = count_close_pairs(compare, len(kept))
        pairs = process_time() - start
        compared[count] = len(kept) * (len(kept) - 1) // 2
        seconds[count] = words + simhash + pairs
        print(
            f"{count:>7,} {int(seen.sum()):>7,} {words:>9.3f} {simhash:>10.3f} {pairs:>9.4f} "
            f"{compared[count]:>10,} {found:>7,}"
        )
    print_finding(
        "SimHash pairwise takes about 2 s for 100 texts and a minute for 1,000: 30 times as long",
        f"{seconds[most // 10]:.2f} s for {most // 10:,} and {seconds[most]:.2f} s for {most:,}: "
        f"{seconds[most] / seconds[most // 10]:.0f} times as long, for "
        f"{compared[most] / compared[most // 10]:.0f} times the comparisons",
        None,
        "the comparisons grow with the square in both, but here a comparison is one XOR in an array, so that "
        "to cut words takes most of the time",
    )
