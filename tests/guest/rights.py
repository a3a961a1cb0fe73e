"""Rights, one by one, and what an account meets that reserves a record."""

import json
import re

from db_dedup import Database, Deduplicator, Reservation
from db_dedup.errors import DedupError

GRANT = re.compile(r"GRANT (?P<rights>[A-Z, ]+(\(\w+\))?) ON (?P<object>.+) TO (?P<account>\w+)")


def faults_of_reserving(url: str, record: str) -> list[str]:
    """Reserve a petition and release it; return what goes wrong."""
    ours = Database(url)
    try:
        dedup = Deduplicator(ours, "petitions")
        found = dedup.reserve(json.loads(record))
        assert isinstance(found, Reservation)
        dedup.release(found.name)
    except DedupError as error:
        return [f"a reservation: {error}"]
    finally:
        ours.close()
    return []


def units(statements: list[str]) -> list[tuple[str, str, str, str]]:
    """(right, object, account, statement), one for each right that the statements grant."""
    grants = [GRANT.fullmatch(statement) for statement in statements]
    return [
        (right, g["object"], g["account"], g[0])
        for g in grants
        if g
        for right in g["rights"].split(", ")
        if right != "CREATE" or "SCHEMA" in g["object"]  # elsewhere it is there for the grant's own sake
    ]
