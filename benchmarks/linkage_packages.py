"""splink and dedupe, each with the comparisons that its documentation advises for such columns."""

import logging
import random
import resource
import warnings
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from importlib import import_module
from io import StringIO
from itertools import combinations
from multiprocessing import get_context
from typing import Any, Final

from benchmarks.linkage_data import Linkage
from benchmarks.scores import Pair

MATCHES = 100
DISTINCT = 300
"""How many labelled pairs of each kind dedupe learns from."""

MOST_BYTES = 12 << 30
MOST_SECONDS = 600
"""What dedupe may take before it is given up."""

_TRAINING: Final = {"recall": 0.95, "index_predicates": False}


def find_by_splink(linkage: Linkage) -> dict[Pair, float]:
    """Candidates with their probabilities, from a model that EM trained without labels."""
    splink, arrow = import_module("splink"), import_module("pyarrow")
    logging.getLogger("splink").setLevel(logging.ERROR)
    database = splink.DuckDBAPI()
    records = [
        {
            "unique_id": number,
            **{name: value or None for name, value in row.items()},
            **_word_lists(linkage, row),
        }
        for number, row in enumerate(linkage.rows)
    ]
    sides = [records[: linkage.split], records[linkage.split :]] if linkage.split else [records]
    tables = [
        database.register(arrow.Table.from_pylist(side), dataset_display_name=f"side_{number}")
        for number, side in enumerate(sides)
    ]
    blocks = [splink.block_on(*block) for block in linkage.blocks]
    settings = splink.SettingsCreator(
        link_type="link_only" if linkage.split else "dedupe_only",
        comparisons=_comparisons(linkage),
        blocking_rules_to_generate_predictions=blocks or ["1=1"],
    )
    linker = splink.Linker(tables if linkage.split else tables[0], settings, log_level=None)
    training = [splink.block_on(*block) for block in linkage.training]
    linker.training.estimate_probability_two_random_records_match(training, recall=0.7)
    linker.training.estimate_u_using_random_sampling(max_pairs=1e6, seed=1)
    for block in training:
        linker.training.estimate_parameters_using_expectation_maximisation(block)
    found = linker.inference.predict(threshold_match_probability=0.001).as_record_list()
    return {_ordered(row["unique_id_l"], row["unique_id_r"]): row["match_probability"] for row in found}


def _comparisons(linkage: Linkage) -> list[Any]:
    library = import_module("splink.comparison_library")
    return [
        *(library.JaroWinklerAtThresholds(name, [0.92, 0.8]) for name in linkage.names),
        *(library.ArrayIntersectAtSizes(f"{name}_words", [6, 4, 3, 2, 1]) for name in linkage.texts),
        *(library.LevenshteinAtThresholds(name, [1, 2]) for name in linkage.values),
    ]


def _word_lists(linkage: Linkage, row: dict[str, str]) -> dict[str, list[str] | None]:
    return {f"{name}_words": sorted(set(row[name].split())) or None for name in linkage.texts}


def find_by_dedupe(linkage: Linkage) -> set[Pair]:
    """Its answer at its default threshold, trained from labelled pairs; half of the distinct are alike.

    It runs in a process of its own, because its blocks may fill any memory.

    Raises:
        MemoryError: it wants more than `MOST_BYTES`.
        TimeoutError: its process was ended: it wants more than `MOST_SECONDS` of the processor, or more
            memory than the machine has.
    """
    try:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=_set_limits) as process:
            return process.submit(_find_in_threads, linkage).result()
    except BrokenProcessPool as error:
        raise TimeoutError from error


def _set_limits() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))


def _find_in_threads(linkage: Linkage) -> set[Pair]:
    # Processes that joblib starts would keep this one from ending.
    with import_module("joblib").parallel_config(backend="threading"):
        return _find_by_dedupe(linkage)


def _find_by_dedupe(linkage: Linkage) -> set[Pair]:
    dedupe = import_module("dedupe")
    warnings.simplefilter("ignore")
    logging.getLogger("dedupe").setLevel(logging.ERROR)
    rows = dict(enumerate({name: value or None for name, value in row.items()} for row in linkage.rows))
    fields = _fields(linkage)
    random.seed(1)
    if linkage.split:
        sides = (
            {number: row for number, row in rows.items() if number < linkage.split},
            {number: row for number, row in rows.items() if number >= linkage.split},
        )
        linker = dedupe.RecordLink(fields, num_cores=1)
        linker.prepare_training(*sides, training_file=_labelled(linkage, rows))
        linker.train(**_TRAINING)
        return {_ordered(*map(int, pair)) for pair, _ in linker.join(*sides)}
    deduper = dedupe.Dedupe(fields, num_cores=1)
    deduper.prepare_training(rows, training_file=_labelled(linkage, rows))
    deduper.train(**_TRAINING)
    clusters = deduper.partition(rows)
    return {_ordered(*map(int, pair)) for members, _ in clusters for pair in combinations(members, 2)}


def _fields(linkage: Linkage) -> list[Any]:
    variables = import_module("dedupe.variables")
    has_missing = {name: any(not row[name] for row in linkage.rows) for name in linkage.rows[0]}
    corpora = {name: [row[name] for row in linkage.rows if row[name]] for name in linkage.texts}
    return [
        *(variables.String(name, has_missing=has_missing[name]) for name in linkage.names),
        *(
            variables.Text(name, corpus=corpora[name], has_missing=has_missing[name])
            for name in linkage.texts
        ),
        *(variables.ShortString(name, has_missing=has_missing[name]) for name in linkage.values),
    ]


def _labelled(linkage: Linkage, rows: dict[int, dict[str, str | None]]) -> StringIO:
    """A file of labels: pairs that come otherwise must be in the sample that dedupe draws of the records."""
    matches = random.sample(sorted(linkage.wanted), min(MATCHES, len(linkage.wanted)))
    distinct = _distinct_pairs(linkage, alike=True) + _distinct_pairs(linkage, alike=False)
    labels = {
        label: [(rows[a], rows[b]) for a, b in pairs]
        for label, pairs in (("match", matches), ("distinct", distinct))
    }
    file = StringIO()
    import_module("dedupe").write_training(labels, file)
    file.seek(0)
    return file


def _distinct_pairs(linkage: Linkage, *, alike: bool) -> list[Pair]:
    """Pairs that are no matches; alike ones agree in a column."""
    by_value: dict[tuple[str, str], list[int]] = {}
    for number, row in enumerate(linkage.rows):
        for name, value in row.items():
            by_value.setdefault((name, value), []).append(number)
    shared = [members for (_, value), members in by_value.items() if value and len(members) > 1]
    everything = list(range(len(linkage.rows)))
    pairs: set[Pair] = set()
    for _ in range(100 * DISTINCT):
        a, b = random.sample(random.choice(shared) if alike else everything, 2)
        pair = _ordered(a, b)
        if linkage.may_match(pair) and pair not in linkage.wanted:
            pairs.add(pair)
        if len(pairs) == DISTINCT // 2:
            break
    return sorted(pairs)


def _ordered(a: int, b: int) -> Pair:
    return (a, b) if a < b else (b, a)
