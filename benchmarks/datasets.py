"""The texts that the benchmarks read from the folder given by `--data`."""

import csv
import gzip
from datetime import datetime
from pathlib import Path

from sqlalchemy import Column, DateTime, Engine, Integer, MetaData, String, Table, Text, insert

csv.field_size_limit(1 << 30)

PETITIONS = Table(
    "petitions",
    MetaData(),
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("user_id", String(40)),
    Column("title", String(400)),
    Column("content", Text),
    Column("created_at", DateTime),
)
ARTICLES = Table(
    "articles",
    MetaData(),
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("text", Text),
)


def read_petitions(data: Path) -> list[dict[str, object]]:
    """petitions-gold: 2,173 rows of `PETITIONS`."""
    rows = _read(data / "petitions-gold" / "petitions.csv.gz")
    return [
        {
            "id": int(row["id"]),
            "user_id": row["user_id"],
            "title": row["title"],
            "content": row["content"],
            "created_at": _date(row["created_at"]),
        }
        for row in rows
    ]


def read_gold_pairs(data: Path) -> dict[frozenset[str], str]:
    """The labelled pairs: {id, id} -> V, S, R or D."""
    with (data / "petitions-gold" / "pairs.csv").open(newline="") as file:
        return {frozenset((row["id_a"], row["id_b"])): row["label"] for row in csv.DictReader(file)}


def read_articles(data: Path) -> list[dict[str, object]]:
    """cn-law-articles: 147,288 rows of `ARTICLES`."""
    rows = _read(data / "cn-law-articles" / "articles.csv.gz")
    return [{"id": int(row["id"]), "text": row["text"]} for row in rows]


def read_replies(data: Path) -> list[str]:
    """cofacts-replies-2019: the texts of 24,097 replies."""
    return [row["text"] for row in _read(data / "cofacts-replies-2019" / "replies.csv.gz")]


def read_texts(path: Path, column: str) -> list[str]:
    """The texts of one column of a CSV file, packed or not; empty ones are left out."""
    if path.suffix == ".gz":
        rows = _read(path)
    else:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    return [row[column] for row in rows if row[column]]


def read_english(data: Path) -> dict[str, list[str]]:
    """Name of a set -> its English texts: complaints, petitions, tweets, messages."""
    complaints = _read(data / "cfpb-complaints" / "complaints_full_columns.csv.gz")
    tweets = [
        row["text"]
        for name in ("airline", "apple")
        for row in _read(data / "tweets-en" / f"{name}_tweets.csv.gz")
    ]
    with (data / "sms-spam" / "sms.csv").open(newline="", encoding="utf-8") as file:
        messages = [row["message"] for row in csv.DictReader(file)]
    return {
        "cfpb-complaints": [text for row in complaints if (text := row["Consumer complaint narrative"])],
        "us-wethepeople-petitions": [
            f"{row['title']}\n{row['body']}"
            for row in _read(data / "us-wethepeople-petitions" / "petitions.csv.gz")
        ],
        "tweets-en": tweets,
        "sms-spam": messages,
    }


def read_titles(data: Path, most: int) -> list[str]:
    """weibo-hot-search: the first titles."""
    return [row["title"] for row in _read(data / "weibo-hot-search" / "titles.csv.gz")[:most]]


def read_questions(data: Path) -> list[tuple[str, str]]:
    """zhihu-hot-questions: question, title; a question has several titles if it was edited."""
    return [(row["qid"], row["title"]) for row in _read(data / "zhihu-hot-questions" / "questions.csv.gz")]


def load(engine: Engine, table: Table, rows: list[dict[str, object]]) -> None:
    """Make the table and fill it."""
    with engine.begin() as connection:
        table.create(connection)
        for first in range(0, len(rows), 5000):
            connection.execute(insert(table), rows[first : first + 5000])


def _read(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _date(text: str) -> datetime:
    for form in ("%Y/%m/%d %H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y/%m/%d %H:%M"):
        try:
            return datetime.strptime(text, form)  # local time, as it was written
        except ValueError:
            continue
    raise ValueError(f"no date: {text!r}")
