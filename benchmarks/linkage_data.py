"""Tables of records with known matches: persons, restaurants, products, sites."""

import csv
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from benchmarks.scores import Pair


@dataclass(frozen=True)
class Linkage:
    """Records, and which of them are the same thing.

    Attributes:
        rows: the normalised columns of each record, "" where one is missing.
        split: how many of the first rows are in the one table, the rest being in the other; 0 where there
            is one table, whose rows are to be compared with each other.
        wanted: the matches, by the rows' numbers.
        names: columns of a few words.
        texts: columns of many words.
        values: columns of a number, a date or a code.
        blocks: SQL expressions; splink compares two records where they agree in all of one entry, or, if
            there is none, all records.
        training: such entries, each for one round of its EM training.
    """

    name: str
    rows: list[dict[str, str]]
    split: int
    wanted: set[Pair]
    names: tuple[str, ...]
    texts: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    blocks: tuple[tuple[str, ...], ...] = ()
    training: tuple[tuple[str, ...], ...] = ()

    def may_match(self, pair: Pair) -> bool:
        """Whether the pair is one that is looked for: of two tables, a row of each."""
        return not self.split or pair[0] < self.split <= pair[1]


def read_linkages(data: Path) -> list[Linkage]:
    """All four, from record-linkage/."""
    folder = data / "record-linkage"
    return [_persons(folder), _sites(folder), _restaurants(folder), _products(folder)]


def cut(linkage: Linkage, most: int) -> Linkage:
    """The first rows of a set, of two tables the first of each, and the matches among them."""
    kept = [*range(min(most, linkage.split)), *range(linkage.split, len(linkage.rows))[:most]]
    numbers = {old: new for new, old in enumerate(kept)}
    return Linkage(
        linkage.name,
        [linkage.rows[number] for number in kept],
        min(most, linkage.split),
        {(numbers[a], numbers[b]) for a, b in linkage.wanted if a in numbers and b in numbers},
        linkage.names,
        linkage.texts,
        linkage.values,
        linkage.blocks,
        linkage.training,
    )


def _persons(folder: Path) -> Linkage:
    records = _read(folder / "febrl" / "febrl3.csv")
    numbers = {record["rec_id"]: number for number, record in enumerate(records)}
    names = ("given_name", "surname", "address_1", "address_2", "suburb")
    values = ("street_number", "postcode", "state", "date_of_birth", "soc_sec_id")
    links = _read(folder / "febrl" / "febrl3_links.csv")
    return Linkage(
        "Febrl 3: made-up persons",
        _rows(records, (*names, *values)),
        0,
        {_ordered(numbers[link["0"]], numbers[link["1"]]) for link in links},
        names,
        values=values,
        blocks=(
            ("date_of_birth",),
            ("soc_sec_id",),
            ("given_name", "surname"),
            ("postcode", "street_number"),
            ("surname", "postcode"),
        ),
        training=(("date_of_birth",), ("given_name", "surname")),
    )


def _sites(folder: Path) -> Linkage:
    records = _read(folder / "dedupe-csv-example" / "csv_example_input_with_true_ids.csv")
    columns = {"Site name": "site_name", "Address": "address", "Zip": "zip", "Phone": "phone"}
    rows = [{new: _normalised(record[old]) for old, new in columns.items()} for record in records]
    sites: dict[str, list[int]] = {}
    for number, record in enumerate(records):
        sites.setdefault(record["True Id"], []).append(number)
    return Linkage(
        "dedupe's example: childcare sites",
        rows,
        0,
        {pair for members in sites.values() for pair in combinations(members, 2)},
        ("site_name", "address"),
        values=("zip", "phone"),
        blocks=(("phone",), ("address",), ("site_name",), ("left(address, 6)",)),
        training=(("phone",), ("address",)),
    )


def _restaurants(folder: Path) -> Linkage:
    labelled = _read(folder / "fodors-zagats" / "pairs.csv")
    columns = ("name", "addr", "city", "phone", "type")
    sides = [[tuple(pair[f"{side}_{name}"] for name in columns) for pair in labelled] for side in "lr"]
    left, right = (list(dict.fromkeys(side)) for side in sides)
    numbers = [{record: number for number, record in enumerate(side)} for side in (left, right)]
    rows = [
        {name: _normalised(value) for name, value in zip(columns, record, strict=True)}
        for record in (*left, *right)
    ]
    for row in rows:
        row["phone"] = re.sub(r"\D", "", row["phone"])
    return Linkage(
        "Fodors-Zagats: restaurants",
        rows,
        len(left),
        {
            (numbers[0][a], len(left) + numbers[1][b])
            for a, b, pair in zip(*sides, labelled, strict=True)
            if pair["label"] == "1"
        },
        ("name", "addr", "city", "type"),
        values=("phone",),
        training=(("phone",), ("name",)),
    )


def _products(folder: Path) -> Linkage:
    abt, buy = (_read(folder / "abt-buy" / f"{name}.csv") for name in ("abt", "buy"))
    columns = ("name", "description", "price")
    matches = _read(folder / "abt-buy" / "gt.csv")
    return Linkage(
        "Abt-Buy: products",
        _rows([*abt, *buy], columns),
        len(abt),
        {(int(match["abt_id"]), len(abt) + int(match["buy_id"])) for match in matches},
        (),
        texts=("name", "description"),
        values=("price",),
        training=(("split_part(name, ' ', 1)",), ("split_part(name, ' ', -1)",)),
    )


def _rows(records: Iterable[Mapping[str, str]], columns: tuple[str, ...]) -> list[dict[str, str]]:
    return [{name: _normalised(record[name] or "") for name in columns} for record in records]


def _normalised(text: str) -> str:
    """Lower case, and of the punctuation only what may belong to a word or a number."""
    return " ".join(re.sub(r"[^\w./&-]+", " ", text.lower()).split())


def _ordered(a: int, b: int) -> Pair:
    return (a, b) if a < b else (b, a)


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
