"""Reservations: records that passed a check and will be stored soon."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Reservation:
    """A record that is checked and not stored yet. Until it ends, no record like it passes the check.

    Attributes:
        name: identifies the reservation when it is confirmed or released.
        expires_at: UTC, without a zone, by the clock of the database.
        row_key: of the row that will be stored; None if it is not known yet.
        packed: what the record is compared by, without its text.
    """

    name: str
    expires_at: datetime
    row_key: str | None
    packed: bytes
