"""What a scan would cost."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ScanCosts:
    """An estimate of what a scan would cost.

    Reading and matching are measured; writing is estimated from the rows that would be written and from what
    each costs on such a database.

    Attributes:
        fingerprints: how many fingerprints it would write.
        entries: how many entries of the index of sketches it would write.
        pairs: how many pairs it would write, without the links of exact duplicates.
        bytes: how much more disk the database that stores the answer would use.
        writing_seconds: the time to write all that.
        seconds: the time of the whole scan.
        locks: how the scan affects other sessions, a sentence each.
    """

    fingerprints: int
    entries: int
    pairs: int
    bytes: int
    writing_seconds: float
    seconds: float
    locks: tuple[str, ...]
