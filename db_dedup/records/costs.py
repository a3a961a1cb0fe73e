"""What a scan would cost."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ScanCosts:
    """What a scan would cost, about.

    Reading and matching are measured; writing is estimated from the rows that would be written and from what
    each costs on such a database.

    Attributes:
        fingerprints: rows that it would write, or write again.
        entries: of the sketch index.
        pairs: pairs, without the links of exact duplicates.
        bytes: of the disk of the database that keeps the answer, beside what is stored there.
        writing_seconds: to write all that.
        seconds: of the whole scan.
        locks: what others notice meanwhile, a sentence each.
    """

    fingerprints: int
    entries: int
    pairs: int
    bytes: int
    writing_seconds: float
    seconds: float
    locks: tuple[str, ...]
