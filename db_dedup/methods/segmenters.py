"""The segmenters by name: those of the product, THULAC, and those that run in Java."""

from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from typing import Final

from db_dedup.extras import load, require
from db_dedup.flow.text.segment import SEGMENTERS as PRODUCT_SEGMENTERS
from db_dedup.flow.text.segment import cut_in_batches, make_segmenter
from db_dedup.methods.corpus import CutTexts
from db_dedup.methods.entries import SegmenterEntry, by_name
from db_dedup.methods.java import JAVA_SEGMENTERS

_SUMMARIES: Final = {
    "jieba": ("jieba, precise mode", ("P4",)),
    "jieba-search": ("jieba, search mode: words and the shorter words in them", ("P4",)),
    "jieba-full": ("jieba, full mode: every word of the dictionary", ("P4",)),
    "words": ("words between spaces and punctuation, for scripts that separate them", ()),
    "ik-fine": ("IKAnalyzer, all words", ("P4",)),
    "ik-smart": ("IKAnalyzer, the longest words only", ("P1", "P4")),
    "hanlp-standard": ("HanLP, standard", ("P4",)),
    "hanlp-nlp": ("HanLP, NLP", ("P4",)),
    "hanlp-index": ("HanLP, index: words and the shorter words in them", ("P4",)),
    "hanlp-n-shortest": ("HanLP, N-shortest paths", ("P4",)),
    "hanlp-shortest": ("HanLP, shortest path", ("P4",)),
    "hanlp-crf": ("HanLP, conditional random field", ("P4",)),
    "hanlp-fast": ("HanLP, fast dictionary", ("P4",)),
    "lucene-smartcn": ("Lucene's SmartChineseAnalyzer, which also stems English words", ()),
}


def _cut_by_product(name: str) -> CutTexts:
    segmenter = make_segmenter(name)

    def cut(texts: Sequence[str]) -> list[list[str]]:
        # The segmenters of the product take normalised texts, without newlines.
        lines = [" ".join(text.split()) for text in texts]
        rows: list[list[str]] = []
        row: list[str] = []
        for tokens in cut_in_batches(segmenter, lines):
            for part in tokens:
                if part == "\n":
                    rows.append(row)
                    row = []
                else:
                    row.append(part)
        return rows

    return cut


def _thulac() -> CutTexts:
    """Load THULAC with its model, which takes seconds."""
    with redirect_stdout(StringIO()):  # it prints that its model is loaded
        analyser = load("thulac", "thulac").thulac(seg_only=True)
    return lambda texts: [[token for token, _ in analyser.cut(text)] for text in texts]


def _summary(name: str) -> str:
    if name in _SUMMARIES:
        return _SUMMARIES[name][0]
    return f"character n-grams of {name.removeprefix('chars:')}"


def _papers(name: str) -> tuple[str, ...]:
    return _SUMMARIES.get(name, ("", ()))[1]


SEGMENTERS: Final[Mapping[str, SegmenterEntry]] = by_name(
    [
        *(
            SegmenterEntry(name, _summary(name), _papers(name), partial(_cut_by_product, name))
            for name in PRODUCT_SEGMENTERS
        ),
        SegmenterEntry(
            "thulac", "THULAC, a structured perceptron", (), _thulac, partial(require, "thulac", "thulac")
        ),
        *(
            SegmenterEntry(name, _summary(name), _papers(name), segmenter.load, segmenter.check)
            for name, segmenter in JAVA_SEGMENTERS.items()
        ),
    ]
)
"""Name -> what cuts texts into tokens."""
