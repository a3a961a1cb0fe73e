"""Reservations, compared with records by keyed hashes."""

import secrets
from collections.abc import Container, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from db_dedup.config import WatchedTable
from db_dedup.engines.embedded.queued import Queued
from db_dedup.flow.keyed_rows import KEY_BYTES, KeyedRow, have_other_numbers, keyed_row, pack, unpack
from db_dedup.flow.pipeline import FingerprintedRows, Fingerprinter, joined_rows
from db_dedup.records import Match, SourceRow
from db_dedup.records.fingerprints import DigestPair
from db_dedup.records.reservations import Reservation

_TEXT: Final = "东门2号楼停水"


def pack_record(done: FingerprintedRows, within: str | None, others: Sequence[Reservation]) -> bytes:
    """Return what a record is compared by, without its text.

    It gets the key of another reservation if there is one: reservations with one key are compared at once.

    Args:
        done: what was computed of the one record.
        within: the text that it must share with a duplicate.
        others: the reservations that have not expired.
    """
    key = unpack(others[0].packed)[1] if others else secrets.token_bytes(KEY_BYTES)
    return pack(keyed_row(done, 0, within, key), key)


def reserved_matches(
    watched: WatchedTable,
    rows: Sequence[SourceRow],
    done: FingerprintedRows,
    reservations: Sequence[Reservation],
    rejected: Container[DigestPair],
) -> list[list[Match]]:
    """Return for each of n records the reservations that it duplicates.

    Args:
        watched: the rule.
        rows: n records.
        done: what was computed of them.
        reservations: by the same recipe.
        rejected: pairs of texts that people have labelled as no duplicates.
    """
    found: list[list[Match]] = [[] for _ in rows]
    by_key: dict[bytes, list[tuple[Reservation, KeyedRow]]] = {}
    for reservation in reservations:
        row, key = unpack(reservation.packed)
        by_key.setdefault(key, []).append((reservation, row))
    for key, some in by_key.items():
        keyed = [keyed_row(done, i, row.within, key) for i, row in enumerate(rows)]
        for matches, more in zip(found, _matches(watched, keyed, some, rejected), strict=True):
            matches.extend(more)
    return found


def make_reservations_ready(watched: WatchedTable, fingerprinter: Fingerprinter) -> None:
    """Reserve a made-up short record and compare it, so that numba compiles what this needs."""
    texts = tuple(_TEXT for _ in watched.columns)
    done, row = fingerprinter.fingerprint([texts]), SourceRow("", None, texts, None)
    made_up = Reservation("", datetime.min, None, pack_record(done, None, []))
    reserved_matches(watched, [row], done, [made_up], set())


def digests_of(reservations: Sequence[Reservation]) -> set[bytes]:
    """Return the digests of reservations."""
    return {unpack(reservation.packed)[0].done.digests[0] for reservation in reservations}


def _matches(
    watched: WatchedTable,
    records: Sequence[KeyedRow],
    reserved: Sequence[tuple[Reservation, KeyedRow]],
    rejected: Container[DigestPair],
) -> list[list[Match]]:
    by_name = {reservation.name: (reservation, row) for reservation, row in reserved}
    names = list(by_name)
    waiting = Queued(
        frozenset(),
        [SourceRow(name, None, (), by_name[name][1].within) for name in names],
        joined_rows([by_name[name][1].done for name in names]),
    )
    rows = [SourceRow("", None, (), record.within) for record in records]
    done = joined_rows([record.done for record in records])
    found = waiting.matches(watched, rows, done, rejected, [None] * len(rows))
    return [
        [
            replace(
                match,
                row_key=by_name[match.row_key][0].row_key or "",
                contained_key=None,
                is_reserved=True,
            )
            for match in matches
            if not have_other_numbers(record.numbers, by_name[match.row_key][1].numbers)
        ]
        for record, matches in zip(records, found, strict=True)
    ]
