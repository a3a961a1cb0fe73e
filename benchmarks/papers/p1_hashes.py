"""P1, Table 2: the time of SimHash with three hash functions, to 30,000 petitions (made up)."""

from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path

from benchmarks.papers.petition_records import cut_contents, with_weighted_columns
from benchmarks.papers.report import print_finding, side_by_side
from db_dedup.methods import HASHES, Corpus, HashTokens, frequency, simhash64
from db_dedup.sample import generate_petitions

NAMES = ("cityhash64", "bkdr", "simhash-own")
"""In the order of P1, the fastest first."""


@dataclass(frozen=True)
class Sizes:
    """At most so many petitions; a third and two thirds of them come first."""

    petitions: int = 30_000


SMALL = Sizes(petitions=300)


def run(data: Path | None, sizes: Sizes = Sizes()) -> None:  # noqa: ARG001 - it needs none
    """Print CPU seconds of the hash functions alone, and of SimHash from words to fingerprints."""
    petitions = generate_petitions(sizes.petitions).petitions
    corpus = with_weighted_columns(petitions, cut_contents(petitions))
    hashes = {name: HASHES[name].load() for name in NAMES}
    for hash_tokens in hashes.values():  # compiled, or read from the cache
        _fingerprint(Corpus(corpus.texts[:2], corpus.tokens[:2]), hash_tokens)
    print("CPU seconds, medians of three by turns; words are cut before")
    print(f"{'petitions':>9} {'words':>10}  {'':<26}" + "".join(f"{name:>13}" for name in NAMES))
    for third in (1, 2, 3):
        count = sizes.petitions * third // 3
        part = Corpus(corpus.texts[:count], corpus.tokens[:count])
        words = list(chain.from_iterable(part.tokens))
        alone = side_by_side({name: partial(of, words) for name, of in hashes.items()})
        whole = side_by_side({name: partial(_fingerprint, part, of) for name, of in hashes.items()})
        for what, seconds in (("hash of every word", alone), ("SimHash, each word once", whole)):
            cells = "".join(f"{seconds[name]:>13.3f}" for name in NAMES)
            print(f"{count:>9,} {len(words):>10,}  {what:<26}{cells}")
    is_in_order = [alone[name] for name in NAMES] == sorted(alone.values())
    order = sorted(NAMES, key=alone.__getitem__)
    slowest, fastest = max(whole.values()), min(whole.values())
    print_finding(
        "the time of SimHash rises in the order CityHash, BKDR, SimHash's own hash",
        f"{' < '.join(order)} for the hashes alone; SimHash as a whole differs by a factor of "
        f"{slowest / fastest:.2f}",
        is_in_order,
        "CityHash is called once for each word from Python, the others are compiled loops over all words; "
        "a word is hashed once for all petitions, so the hash hardly matters for SimHash",
    )


def _fingerprint(corpus: Corpus, hash_tokens: HashTokens) -> None:
    simhash64(frequency(corpus, hash_tokens))
