"""The methods of the five papers (docs/reference/methods.md), to use by themselves and to compare with each
other.

Three steps, each with a registry of names: a segmenter cuts texts into tokens, features give them weights, a
method compares pairs of rows.

>>> import numpy as np
>>> from db_dedup.methods import FEATURES, METHODS, SEGMENTERS, cityhash64, cut_corpus
>>> texts = ["夜间施工噪音扰民", "夜间施工噪音扰民严重", "公交车晚点"]
>>> corpus = cut_corpus(texts, SEGMENTERS["jieba"].load())
>>> features = FEATURES["frequency"].load()(corpus, cityhash64)
>>> compare = METHODS["jaccard"].load()(features)
>>> compare(np.array([0, 0]), np.array([1, 2])).tolist()
[0.8, 0.0]

The product uses none of this: it has its own steps in `db_dedup.flow`, some of which these methods share.
"""

from db_dedup.methods.clusters import Clusters, single_pass
from db_dedup.methods.comparators import (
    cosine,
    hamming,
    hamming32,
    i_match,
    jaccard,
    jaccard_of_shorter,
    minhash,
    minhash_smallest,
    simhash_cosine,
)
from db_dedup.methods.corpus import Corpus, CutTexts, HashTokens, MakeFeatures, cut_corpus
from db_dedup.methods.entries import (
    Compare,
    FeatureEntry,
    HashEntry,
    MethodEntry,
    Prepare,
    SegmenterEntry,
    find_entry,
)
from db_dedup.methods.exact import BloomFilter, DigitTrie, EitherBitFilter, SeenTexts
from db_dedup.methods.features import (
    feature_codes,
    frequency,
    relative_frequency,
    shingles,
    strongest,
    text_rank,
    tf_idf,
    unweighted,
)
from db_dedup.methods.fingerprints import simhash32, simhash64, simhash_vectors
from db_dedup.methods.hashes import ap, bkdr, cityhash64, djb, js, murmur, rs, simhash_own
from db_dedup.methods.registry import FEATURES, HASHES, METHODS
from db_dedup.methods.segmenters import SEGMENTERS

__all__ = [
    "FEATURES",
    "HASHES",
    "METHODS",
    "SEGMENTERS",
    "BloomFilter",
    "Clusters",
    "Compare",
    "Corpus",
    "CutTexts",
    "DigitTrie",
    "EitherBitFilter",
    "FeatureEntry",
    "HashEntry",
    "HashTokens",
    "MakeFeatures",
    "MethodEntry",
    "Prepare",
    "SeenTexts",
    "SegmenterEntry",
    "ap",
    "bkdr",
    "cityhash64",
    "cosine",
    "cut_corpus",
    "djb",
    "feature_codes",
    "find_entry",
    "frequency",
    "hamming",
    "hamming32",
    "i_match",
    "jaccard",
    "jaccard_of_shorter",
    "js",
    "minhash",
    "minhash_smallest",
    "murmur",
    "relative_frequency",
    "rs",
    "shingles",
    "simhash32",
    "simhash64",
    "simhash_cosine",
    "simhash_own",
    "simhash_vectors",
    "single_pass",
    "strongest",
    "text_rank",
    "tf_idf",
    "unweighted",
]
