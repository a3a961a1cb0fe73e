"""Stored rows whose sketches meet some others."""

from sqlalchemy import Connection

from db_dedup.flow.sketches import Sketches, meetings
from db_dedup.store.bands import find_sharing
from db_dedup.store.fingerprints import FingerprintStore


def find_meeting(
    connection: Connection, store: FingerprintStore, asked: Sketches
) -> list[tuple[int, int, int]]:
    """(position of the asked sketch, id of a row that it meets, the row's fingerprint), each two once."""
    sharing = find_sharing(connection, store, asked.values)
    which, rows = meetings(asked, sharing.values, sharing.rows, sharing.counts)
    found = (which, sharing.ids[rows], sharing.fingerprints[rows])
    return list(zip(*(column.tolist() for column in found), strict=True))
