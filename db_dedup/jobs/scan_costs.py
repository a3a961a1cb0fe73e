"""What a scan would cost: measured where a dry run does the same work, estimated where only a scan writes."""

from db_dedup.jobs.context import JobContext
from db_dedup.jobs.pieces import pace_of
from db_dedup.jobs.rehearsal import Rehearsal
from db_dedup.records import ScanCosts


def scan_costs(
    context: JobContext, rehearsal: Rehearsal, *, rows: int, pairs: int, in_pieces: bool
) -> ScanCosts:
    """The costs of a scan whose reading and matching have just been rehearsed.

    Args:
        context: the table.
        rehearsal: the fresh answer.
        rows: how many fingerprints it would write.
        pairs: how many pairs it would write.
        in_pieces: it would build its answer beside the stored one, or where there is none; else it writes
            what differs in one transaction.
    """
    share = rows / max(1, rehearsal.report.rows)
    entries = round(rehearsal.sketch_entries * share)
    written = list(zip((rows, entries, pairs), context.dialect.write_costs, strict=True))
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
    found = [f"no row of {context.watched.name} is locked"]
    if context.source_dialect.capabilities.snapshot_beside_writes:
        reading = rehearsal.report.seconds - rehearsal.matching_seconds
        found.append(f"an ALTER TABLE waits for the transaction that reads, about {reading:.1f} s")
    if context.dialect.capabilities.one_writer:
        while_written = (
            f"up to {pace_of(context.dialect).seconds:g} s at a time while the answer is written"
            if in_pieces
            else "while what differs is written"
        )
        found.append(f"other writers of the database that keeps the answer wait {while_written}")
    return tuple(found)
