"""The rows that labelled pairs name, with their texts as they are now."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from db_dedup.config import DEFAULT_PRESET, WatchedTable, watched_table
from db_dedup.errors import ConfigError, InvalidArgumentError
from db_dedup.jobs.context import JobContext
from db_dedup.jobs.review.labels import digests_of
from db_dedup.methods.comparison import LabelledTexts
from db_dedup.plurals import counted
from db_dedup.records import PairLabel, SourceRow
from db_dedup.records.frames import NO_FRAMES, FrameList
from db_dedup.records.labels import RepeatedLabels, TextPair
from db_dedup.store.given_keys import read_given
from db_dedup.store.labels import StoredLabel
from db_dedup.translation import Phrase

_COLUMN: Final = "text"
_LEFT_OUT: Final = ", and {labels} on rows that are not there, have no text or have changed"


@dataclass(frozen=True)
class LabelledRows:
    """Rows with labelled pairs of them.

    Attributes:
        rows: n rows.
        pairs: numbers of two rows, the smaller first -> whether they are duplicates.
        not_there: labels that were left out, because their rows cannot be compared.
        repeated: labels that were left out, because the same pair has a later one.
        watched: the settings by which the product compares the rows.
        frames: the frozen list of these settings.
        is_table: the settings are those of a watched table.
    """

    rows: Sequence[SourceRow]
    pairs: dict[tuple[int, int], bool]
    not_there: int
    repeated: RepeatedLabels
    watched: WatchedTable
    frames: FrameList
    is_table: bool

    def texts(self) -> LabelledTexts:
        """Return the pairs as the methods take them: the text columns of a row are its paragraphs."""
        columns = list(self.watched.columns.values())
        chosen = [i for i, column in enumerate(columns) if column.kind == "text"] or range(len(columns))
        texts = ["\n".join(filter(None, (row.values[i] for i in chosen))) for row in self.rows]
        places = np.array(list(self.pairs), np.int64).reshape(-1, 2)
        return LabelledTexts(texts, places[:, 0], places[:, 1], np.array(list(self.pairs.values()), np.bool_))


def labelled_rows(
    context: JobContext, labels: Iterable[PairLabel] | None, stored: Sequence[StoredLabel]
) -> LabelledRows:
    """Read the rows of a table that labels name; nothing else of the table is read.

    Args:
        context: the table.
        labels: by row key; None to take the stored labels.
        stored: labels by the digests of texts. One whose rows have changed since is left out.

    Raises:
        ConfigError: there is no labelled duplicate, or no pair that is labelled as none.
    """
    given = [(str(v.key_a), str(v.key_b), v.is_duplicate) for v in labels] if labels is not None else None
    wanted = given if given is not None else [(v.key_a, v.key_b, v.is_duplicate) for v in stored]
    keys = list(dict.fromkeys(key for key_a, key_b, _ in wanted for key in (key_a, key_b)))
    found = read_given(context.source_engine.connect, context.source, keys)
    with_text = {row.row_key: row for row in found if any(map(str.strip, row.values))}
    if given is None:
        digests = digests_of(context.watched, list(with_text.values()))
        holds = [{digests.get(v.key_a), digests.get(v.key_b)} == set(v.digests) for v in stored]
    else:
        holds = [key_a != key_b for key_a, key_b, _ in given]
    number_of = {key: number for number, key in enumerate(with_text)}
    valid: list[tuple[tuple[int, int], bool]] = []
    for (key_a, key_b, is_duplicate), is_valid in zip(wanted, holds, strict=True):
        if is_valid and key_a in number_of and key_b in number_of:
            a, b = sorted((number_of[key_a], number_of[key_b]))
            valid.append(((a, b), is_duplicate))
    pairs, not_there = dict(valid), len(wanted) - len(valid)
    _require_both(
        pairs, not_there, Phrase("`db-dedup label {name}` asks for some", name=context.watched.name)
    )
    rows = list(with_text.values())
    repeated = RepeatedLabels.among(valid)
    return LabelledRows(rows, pairs, not_there, repeated, context.watched, context.frames, is_table=True)


def labelled_texts(given: Iterable[TextPair]) -> LabelledRows:
    """Return pairs of texts as rows with one column, each different text once.

    The product compares them by its default preset, without frames, which need a table.

    Raises:
        InvalidArgumentError: a text is empty.
        ConfigError: there is no labelled duplicate, or no pair that is labelled as none.
    """
    number_of: dict[str, int] = {}
    labels: list[tuple[tuple[int, int], bool]] = []
    for number, pair in enumerate(given, 1):
        for text in (pair.text_a, pair.text_b):
            if not text.strip():
                raise InvalidArgumentError(
                    "pair {number} has an empty text: leave the pair out", number=number
                )
        a, b = (number_of.setdefault(text, len(number_of)) for text in (pair.text_a, pair.text_b))
        labels.append(((min(a, b), max(a, b)), pair.is_duplicate))
    pairs, repeated = dict(labels), RepeatedLabels.among(labels)
    _require_both(
        pairs, 0, Phrase("add some to the file; --duplicate-label names what a duplicate is called there")
    )
    rows = [SourceRow(str(number), None, (text,), None) for number, text in enumerate(number_of)]
    watched = watched_table("pairs", {"columns": {_COLUMN: 1}, "preset": DEFAULT_PRESET})
    return LabelledRows(rows, pairs, 0, repeated, watched, NO_FRAMES, is_table=False)


def _require_both(pairs: dict[tuple[int, int], bool], not_there: int, remedy: str) -> None:
    duplicates = sum(pairs.values())
    if 0 < duplicates < len(pairs):
        return
    raise ConfigError(
        "labels of both kinds are needed, of duplicates and of pairs that are none: there are {duplicates:,} "
        "and {others:,}{left_out}; {remedy}",
        duplicates=duplicates,
        others=len(pairs) - duplicates,
        left_out=Phrase(_LEFT_OUT, labels=counted(not_there, "label")) if not_there else "",
        remedy=remedy,
    )
