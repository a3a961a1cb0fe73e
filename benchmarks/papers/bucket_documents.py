"""P1's documents of a MongoDB collection: one for each block value, with all fingerprints that have it.

{blockName, info: [{hashcode, textname}]}. A block value has the name "BLOCK:VALUE", so that equal values of
different blocks are different documents.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final

from db_dedup.records.fingerprints import BLOCK_SHIFTS
from db_dedup.schema.types import to_signed

VARIABLE: Final = "DB_DEDUP_MONGODB_URL"
"""Environment variable: the URL of a server that speaks MongoDB's protocol."""

_DATABASE: Final = "db_dedup_benchmark"
_SECONDS_TO_CONNECT: Final = 5


class NoServerError(Exception):
    """There is no server, or no pymongo; the message says what to do."""


@contextmanager
def open_documents() -> Iterator["BucketDocuments"]:
    """Open an empty collection on the user's server, in a database of its own, which is dropped at the end.

    Raises:
        NoServerError: no URL is named, pymongo is not installed, or the server does not answer.
    """
    url = os.environ.get(VARIABLE)
    if not url:
        raise NoServerError(f"set {VARIABLE} to the URL of a server that speaks MongoDB's protocol")
    try:
        pymongo = import_module("pymongo")
    except ImportError:
        raise NoServerError('pip install -c constraints.txt -e ".[peers]" brings pymongo') from None
    with pymongo.MongoClient(url, serverSelectionTimeoutMS=1000 * _SECONDS_TO_CONNECT) as client:
        try:
            client.drop_database(_DATABASE)
        except pymongo.errors.PyMongoError as error:
            raise NoServerError(f"{VARIABLE}: {str(error).partition(' (')[0]}") from None
        try:
            collection = client[_DATABASE]["blocks"]
            collection.create_index("blockName", unique=True)
            yield BucketDocuments(collection, pymongo.UpdateOne)
        finally:
            client.drop_database(_DATABASE)


class BucketDocuments:
    """A collection of such documents."""

    def __init__(self, collection: Any, update_one: Any) -> None:
        """Use an empty collection.

        Args:
            collection: of pymongo.
            update_one: the class of one update in a batch, `pymongo.UpdateOne`.
        """
        self._collection = collection
        self._update_one = update_one

    def fill(self, rows: Iterable[tuple[str, int]]) -> None:
        """Store (name of the text, fingerprint) of many rows at once, in an empty collection."""
        documents: dict[str, list[dict[str, object]]] = {}
        for name, fingerprint in rows:
            for block in block_names(fingerprint):
                documents.setdefault(block, []).append(_entry(name, fingerprint))
        self._collection.insert_many(
            [{"blockName": block, "info": info} for block, info in documents.items()], ordered=False
        )

    def insert(self, name: str, fingerprint: int) -> None:
        """Store one row: its entry joins four documents."""
        added = {"$push": {"info": _entry(name, fingerprint)}}
        self._collection.bulk_write(
            [
                self._update_one({"blockName": block}, added, upsert=True)
                for block in block_names(fingerprint)
            ],
            ordered=False,
        )

    def has_similar(self, fingerprint: int, radius: int) -> bool:
        """Whether any stored fingerprint is within the radius, one document after another until one is."""
        for block in block_names(fingerprint):
            document = self._collection.find_one({"blockName": block}, {"info": 1})
            if document is not None and _near(document, fingerprint, radius):
                return True
        return False

    def find_similar(self, fingerprint: int, radius: int) -> set[str]:
        """The names of all texts within the radius, at most 3."""
        query = {"blockName": {"$in": block_names(fingerprint)}}
        found: set[str] = set()
        for document in self._collection.find(query, {"info": 1}):
            found.update(_near(document, fingerprint, radius))
        return found


def block_names(fingerprint: int) -> list[str]:
    """The names of the four blocks of a fingerprint, unsigned 64 bits."""
    return [
        f"{number}:{(fingerprint >> shift) & 0xFFFF:04x}"
        for number, shift in enumerate(BLOCK_SHIFTS, start=1)
    ]


def _entry(name: str, fingerprint: int) -> dict[str, object]:
    # MongoDB has signed integers only.
    return {"hashcode": to_signed(fingerprint), "textname": name}


def _near(document: dict[str, Any], fingerprint: int, radius: int) -> list[str]:
    signed = to_signed(fingerprint)
    mask = (1 << 64) - 1
    return [
        entry["textname"]
        for entry in document["info"]
        if ((entry["hashcode"] ^ signed) & mask).bit_count() <= radius
    ]
