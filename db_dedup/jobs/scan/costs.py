"""What a scan would cost: its reading and matching are measured by a dry run, its writing is estimated."""

from typing import Final

from db_dedup.jobs.context import JobContext
from db_dedup.jobs.pace import pace_of
from db_dedup.jobs.scan.rehearsal import Rehearsal
from db_dedup.records import ScanCosts
from db_dedup.translation import Phrase

_WRITERS_WAIT: Final = (
    "other writers of the database that keeps the answer wait while what differs is written"
)
_WRITERS_WAIT_IN_PIECES: Final = (
    "other writers of the database that keeps the answer wait up to {seconds:g} s at a time "
    "while the answer is written"
)


def scan_costs(
    context: JobContext, rehearsal: Rehearsal, *, rows: int, pairs: int, in_pieces: bool
) -> ScanCosts:
    """Return the costs of a scan whose reading and matching were measured by a rehearsal.

    Args:
        context: the table.
        rehearsal: the fresh answer.
        rows: how many fingerprints it would write.
        pairs: how many pairs it would write.
        in_pieces: it would write a new answer in many transactions; else it writes what differs in one.
    """
    share = rows / max(1, rehearsal.report.rows)
    entries = round(rehearsal.sketch_entries * share)
    costs = context.dialect.write_costs
    entry = costs.entry if in_pieces else costs.single_entry
    written = [(rows, costs.fingerprint), (entries, entry), (pairs, costs.pair)]
    seconds = sum(count * cost.microseconds for count, cost in written) / 1e6
    return ScanCosts(
        fingerprints=rows,
        entries=entries,
        pairs=pairs,
        bytes=round(sum(count * cost.bytes for count, cost in written)),
        writing_seconds=round(seconds, 3),
        seconds=round(rehearsal.report.seconds + seconds, 3),
        locks=_locks(context, rehearsal, in_pieces),
    )


def _locks(context: JobContext, rehearsal: Rehearsal, in_pieces: bool) -> tuple[str, ...]:
    found = [Phrase("no row of {name} is locked", name=context.watched.name)]
    if context.source_dialect.capabilities.snapshot_beside_writes:
        reading = rehearsal.report.seconds - rehearsal.matching_seconds
        found.append(
            Phrase(
                "an ALTER TABLE waits for the transaction that reads, about {reading:.1f} s", reading=reading
            )
        )
    if context.dialect.capabilities.one_writer:
        template = _WRITERS_WAIT_IN_PIECES if in_pieces else _WRITERS_WAIT
        found.append(Phrase(template, seconds=pace_of(context.dialect).seconds))
    return tuple(found)
