"""The hashes, features, methods and exact stages by name, as a comparison of all lists them."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, TypeVar

from db_dedup.extras import require
from db_dedup.methods import comparators, features, hashes
from db_dedup.methods.entries import FeatureEntry, HashEntry, MethodEntry, by_name
from db_dedup.methods.hashes import EXTRA

_SHARES: Final = tuple(round(0.05 * step, 2) for step in range(19, 0, -1))
# Unrelated texts differ in half of the bits.
_BITS_OF_64: Final = tuple(float(bits) for bits in range(33))
_BITS_OF_32: Final = tuple(float(bits) for bits in range(17))

_Function = TypeVar("_Function")


def _ready(function: _Function) -> Callable[[], _Function]:
    """Return what loads a function that is there already."""
    return lambda: function


HASHES: Final[Mapping[str, HashEntry]] = by_name(
    [
        HashEntry(
            "cityhash64", "CityHash64, the hash of the product", ("P1", "P2"), _ready(hashes.cityhash64)
        ),
        HashEntry(
            "simhash-own", "the string hash of SimHash's own code", ("P1",), _ready(hashes.simhash_own)
        ),
        HashEntry("bkdr", "BKDR, 64 bits", ("P1", "P3"), _ready(hashes.bkdr)),
        HashEntry("murmur", "MurmurHash3", (), _ready(hashes.murmur), partial(require, "mmh3", EXTRA)),
        HashEntry("ap", "AP", ("P3",), _ready(hashes.ap)),
        HashEntry("djb", "DJB", (), _ready(hashes.djb)),
        HashEntry("js", "JS", (), _ready(hashes.js)),
        HashEntry("rs", "RS", (), _ready(hashes.rs)),
    ]
)
"""Name -> hash function of tokens."""

FEATURES: Final[Mapping[str, FeatureEntry]] = by_name(
    [
        FeatureEntry(
            "none",
            "the set of words, each with the weight 1",
            ("P2", "P4"),
            _ready(features.unweighted),
            is_words=True,
        ),
        FeatureEntry(
            "frequency", "how often a word occurs", ("P1", "P5"), _ready(features.frequency), is_words=True
        ),
        FeatureEntry(
            "relative-frequency",
            "a word's share of the text",
            ("P4",),
            _ready(features.relative_frequency),
            is_words=True,
        ),
        FeatureEntry("tf-idf", "the share, times the word's IDF", ("P4", "P5"), _ready(features.tf_idf)),
        FeatureEntry(
            "textrank", "TextRank, damping 0.85", ("P4", "P5"), _ready(features.text_rank), is_words=True
        ),
        FeatureEntry(
            "feature-codes",
            "the five characters on each side of each punctuation mark",
            ("P5",),
            _ready(features.feature_codes),
            uses_tokens=False,
        ),
        FeatureEntry(
            "tf-idf:20",
            "the 20 words with the largest TF-IDF",
            (),
            _ready(features.strongest(features.tf_idf, 20)),
        ),
        FeatureEntry(
            "textrank:20",
            "the 20 words with the largest TextRank",
            (),
            _ready(features.strongest(features.text_rank, 20)),
        ),
        *(
            FeatureEntry(
                f"shingles:{words}",
                f"runs of {words} consecutive words",
                ("P3",),
                _ready(features.shingles(words)),
            )
            for words in range(2, 6)
        ),
    ]
)
"""Name -> what makes features of a corpus. Other sizes: `features.shingles`, `features.strongest`."""

METHODS: Final[Mapping[str, MethodEntry]] = by_name(
    [
        MethodEntry(
            "simhash",
            "SimHash of 64 bits, Hamming distance",
            ("P1", "P2", "P3", "P4"),
            _ready(comparators.hamming),
            higher_is_alike=False,
            thresholds=_BITS_OF_64,
            uses_weights=True,
        ),
        MethodEntry(
            "simhash-32",
            "SimHash of 32 bits, Hamming distance",
            ("P5",),
            _ready(comparators.hamming32),
            higher_is_alike=False,
            thresholds=_BITS_OF_32,
            uses_weights=True,
        ),
        MethodEntry(
            "simhash-cosine",
            "cosine of the SimHash vectors",
            ("P4",),
            _ready(comparators.simhash_cosine),
            thresholds=_SHARES,
            uses_weights=True,
        ),
        MethodEntry("jaccard", "Jaccard", ("P4", "P5"), _ready(comparators.jaccard), thresholds=_SHARES),
        MethodEntry(
            "jaccard-shorter",
            "Jaccard on the shorter text: the overlap coefficient",
            ("P4",),
            _ready(comparators.jaccard_of_shorter),
            thresholds=_SHARES,
        ),
        MethodEntry(
            "cosine",
            "cosine of the weights",
            ("P4", "P5"),
            _ready(comparators.cosine),
            thresholds=_SHARES,
            uses_weights=True,
        ),
        *(
            MethodEntry(
                f"minhash-one-hash:{size}",
                f"MinHash, the {size} smallest values of one hash function",
                ("P4",),
                _ready(comparators.minhash_smallest(size)),
                thresholds=_SHARES,
            )
            for size in (20, 100)
        ),
        *(
            MethodEntry(
                f"minhash:{count}",
                f"MinHash with {count} hash functions",
                ("P4", "P5"),
                _ready(comparators.minhash(count)),
                thresholds=_SHARES,
            )
            for count in (20, 100)
        ),
        MethodEntry(
            "i-match",
            "I-Match: equal words within a band of IDF",
            ("P1",),
            _ready(comparators.i_match()),
            thresholds=(1.0,),
        ),
    ]
)
"""Name -> comparison. MinHash of other sizes and I-Match with other bands: `comparators`."""
