"""Other packages that find near-duplicate texts, each called as its own documentation does.

All of them get the words, or the character 3-grams, that db_dedup makes of the same texts.
"""

import json
import logging
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path

from benchmarks.materials import Material
from benchmarks.scores import Pair
from db_dedup.flow.text.normalise import normalise_batch
from db_dedup.flow.text.segment import make_segmenter

TEXT_DEDUP_PYTHON = "TEXT_DEDUP_PYTHON"
"""Environment variable: the interpreter of the environment that text-dedup is installed in."""

SEGMENTERS = {"words": "jieba", "5 words": "jieba", "3-grams": "chars:3", "3 characters": "chars:1"}
_PERMUTATIONS = 128
_SLACK = 0.1
"""The index is made for a threshold lower by this; its candidates are then checked by the threshold."""


@dataclass(frozen=True)
class Setting:
    """What a peer compares, and from where on it calls two texts duplicates.

    Attributes:
        shingles: a key of `SEGMENTERS`, or "own" where the package cuts the text itself.
        threshold: a Jaccard similarity, or a number of bits for SimHash.
    """

    shingles: str
    threshold: float

    def __str__(self) -> str:
        return f"{self.shingles}, {self.threshold:g}"


@dataclass(frozen=True)
class Peer:
    """A package.

    Attributes:
        recommended: what its own documentation or its defaults say.
        tried: what it may choose from on each material.
    """

    name: str
    module: str
    find: Callable[[Material, Setting], set[Pair]]
    recommended: Setting
    tried: Sequence[Setting]

    def missing(self) -> str:
        """Why it cannot be measured; "" where it can."""
        if self.module == "text_dedup":
            python = os.environ.get(TEXT_DEDUP_PYTHON)
            return "" if python else f"set {TEXT_DEDUP_PYTHON}, as the docstring of benchmarks/peers.py says"
        return "" if find_spec(self.module) else 'pip install -c constraints.txt -e ".[peers]"'


def shingles_of(material: Material, kind: str) -> list[list[str]]:
    """The shingles of each row, all columns together, with repetitions."""
    segmenter = make_segmenter(SEGMENTERS[kind], ())
    rows: list[list[str]] = [[] for _ in material.rows]
    for column in material.columns:
        texts = normalise_batch([row[column] for row in material.rows])
        tokens = iter(segmenter.cut_batch(texts))
        for row in rows:
            row += [token for token in iter(tokens.__next__, "\n") if any(map(str.isalnum, token))]
    return rows


def find_by_datasketch(material: Material, setting: Setting) -> set[Pair]:
    """Find pairs by MinHashLSH; its candidates are checked by the estimated Jaccard similarity."""
    datasketch = import_module("datasketch")
    rows = [[token.encode() for token in row] for row in shingles_of(material, setting.shingles)]
    sketches = datasketch.MinHash.bulk(rows, num_perm=_PERMUTATIONS)
    index = datasketch.MinHashLSH(threshold=max(0.1, setting.threshold - _SLACK), num_perm=_PERMUTATIONS)
    found = set()
    for number, sketch in enumerate(sketches):
        for other in index.query(sketch):
            if sketch.jaccard(sketches[other]) >= setting.threshold:
                found.add((other, number))
        index.insert(number, sketch)
    return found


def find_by_rensa(material: Material, setting: Setting) -> set[Pair]:
    """Find pairs by RMinHashLSH; its candidates are checked by the estimated Jaccard similarity."""
    rensa = import_module("rensa")
    rows = shingles_of(material, setting.shingles)
    sketches = rensa.RMinHash.from_token_sets(rows, num_perm=_PERMUTATIONS, seed=42)
    index = rensa.RMinHashLSH(
        threshold=setting.threshold, num_perm=_PERMUTATIONS, num_bands=_bands_for(setting.threshold - _SLACK)
    )
    index.insert_many(sketches)
    return {
        (number, other)
        for number, others in enumerate(index.query_all(sketches))
        for other in others
        if number < other and sketches[number].jaccard(sketches[other]) >= setting.threshold
    }


def _bands_for(threshold: float) -> int:
    """Return the least number of bands that proposes a pair at the threshold with a probability of a half."""
    bands = (8, 16, 32, 64)
    return next((b for b in bands if (1 / b) ** (b / _PERMUTATIONS) <= threshold), bands[-1])


def find_by_simhash(material: Material, setting: Setting) -> set[Pair]:
    """Find pairs by SimhashIndex, on counted shingles or on the package's own character 4-grams."""
    simhash = import_module("simhash")
    logging.getLogger("simhash").setLevel(logging.ERROR)
    values: Sequence[str | list[str]]
    if setting.shingles == "own":
        values = ["\n".join(row.values()) for row in material.rows]
    else:
        values = shingles_of(material, setting.shingles)
    sketches = [simhash.Simhash(value or ["\x00"]) for value in values]
    index = simhash.SimhashIndex([], k=int(setting.threshold))
    found = set()
    for number, sketch in enumerate(sketches):
        found |= {(int(other), number) for other in index.get_near_dups(sketch)}
        index.add(str(number), sketch)
    return found


def find_by_text_dedup(program: str, material: Material, setting: Setting) -> set[Pair]:
    """Its command line, in an environment of its own; all pairs of each of its clusters."""
    if setting.shingles == "own":
        texts = ["\n".join(row.values()) for row in material.rows]
    else:
        texts = [" ".join(row) for row in shingles_of(material, setting.shingles)]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "texts.jsonl").write_text(
            "".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8"
        )
        _run_text_dedup(folder, "-m", f"text_dedup.{program}", *_options_of(program, setting))
        clusters = json.loads(_run_text_dedup(folder, "-c", _READ_CLUSTERS))
    members: dict[int, list[int]] = {}
    for number, cluster in clusters:
        members.setdefault(cluster, []).append(number)
    return {pair for each in members.values() for pair in combinations(sorted(each), 2)}


_READ_CLUSTERS = """
import json, pickle
clusters = pickle.load(open("out/uf.pkl", "rb"))
print(json.dumps([[row, clusters.find(row)] for row in list(clusters.parent)]))
"""


def _options_of(program: str, setting: Setting) -> list[str]:
    words = (
        "--path json --data_files texts.jsonl --split train --column text --output out --debug --num_proc 1"
    )
    if program == "simhash":
        bits = int(setting.threshold)
        return [*words.split(), "--bit_diff", str(bits), "--num_bucket", str(bits + 1)]
    size = {"words": "1", "5 words": "5", "3 characters": "3"}[setting.shingles]
    return [*words.split(), "--threshold", str(setting.threshold), "--ngram", size, "--min_length", "1"]


def _run_text_dedup(folder: str, *arguments: str) -> str:
    done = subprocess.run(
        [os.environ[TEXT_DEDUP_PYTHON], *arguments],
        cwd=folder,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": folder},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


def _grid(shingles: Iterable[str], thresholds: Iterable[float]) -> list[Setting]:
    thresholds = list(thresholds)
    return [Setting(each, threshold) for each in shingles for threshold in thresholds]


_JACCARDS = (0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7)
PEERS = (
    Peer(
        "datasketch MinHashLSH",
        "datasketch",
        find_by_datasketch,
        Setting("words", 0.5),
        _grid(("words", "3-grams"), _JACCARDS),
    ),
    Peer(
        "rensa RMinHashLSH",
        "rensa",
        find_by_rensa,
        Setting("words", 0.8),
        _grid(("words", "3-grams"), _JACCARDS),
    ),
    Peer(
        "simhash SimhashIndex",
        "simhash",
        find_by_simhash,
        Setting("own", 3),
        _grid(("words", "own"), (3, 5, 7)),
    ),
    Peer(
        "text-dedup minhash",
        "text_dedup",
        partial(find_by_text_dedup, "minhash"),
        Setting("5 words", 0.7),
        _grid(("words", "3 characters"), (0.3, 0.4, 0.5, 0.6, 0.7)),
    ),
    Peer(
        "text-dedup simhash",
        "text_dedup",
        partial(find_by_text_dedup, "simhash"),
        Setting("own", 3),
        _grid(("own",), (3, 5, 7)),
    ),
)
"""In the order in which they are printed."""
