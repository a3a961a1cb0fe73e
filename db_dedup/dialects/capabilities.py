"""What differs between databases and is plain data: capabilities, costs of writes, types of columns."""

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Capabilities:
    """What differs between databases and is plain data.

    Attributes:
        has_schemas: our tables live in a schema of their own rather than behind a prefix.
        max_name_length: of a table, view or trigger; None where nothing limits it.
        name_limit_counts_bytes: that limit counts UTF-8 bytes rather than characters.
        snapshot_beside_writes: a long read and our own writes go on at the same time.
        one_writer: while we write, nobody else can.
        commits_ddl: each CREATE and DROP ends the transaction and commits it.
        refuses_keys: a query fails if the type of a key column cannot hold a key that it looks for.
        updates_all_indexes: an UPDATE may write the row into each index again, also into those whose columns
            stay as they are.
        lowers_names: a query whose value says whether the server stores names of tables and views in lower
            case; None where none does.
    """

    has_schemas: bool
    max_name_length: int | None
    name_limit_counts_bytes: bool
    snapshot_beside_writes: bool
    one_writer: bool = False
    commits_ddl: bool = False
    refuses_keys: bool = False
    updates_all_indexes: bool = False
    lowers_names: str | None = None


class WriteCost(NamedTuple):
    """What one row of a table of ours costs in a bulk insert, indexes included: bytes of the disk, and
    microseconds."""

    bytes: float
    microseconds: float


class WriteCosts(NamedTuple):
    """What a scan's writes cost on some database, as `python -m benchmarks indexes` measures it.

    Attributes:
        fingerprint: a row's fingerprint, digest and place in its group.
        entry: an entry in the segments of the index of sketches, and its share of the sets of features: a
            longer text has more of both.
        pair: a pair.
        single_entry: a single entry of the index, and its value in the row's sketch.
    """

    fingerprint: WriteCost
    entry: WriteCost
    pair: WriteCost
    single_entry: WriteCost


@dataclass(frozen=True)
class ColumnTypes:
    """What is declared for the columns of our tables, as SQL.

    Attributes:
        row_id: a signed integer of 64 bits, which the database numbers by itself in a primary key.
        digest: 16 bytes.
        sketch: bytes, up to 16 KB.
        packed: bytes, up to 64 KB and more.
        timestamp: date and time to the microsecond, without a time zone.
        nonce: the type of `new_nonce`.
        new_nonce: an expression for a new value that no other row of the queue has. It changes nothing in the
            session: a sequence would change the host's lastval().
        utc_now: an expression for the database's own clock in UTC, as a `timestamp`.
    """

    row_id: str
    digest: str
    sketch: str
    packed: str
    timestamp: str
    nonce: str
    new_nonce: str
    utc_now: str
