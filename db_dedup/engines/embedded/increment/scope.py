"""The data that all steps of a batch share."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from db_dedup.config import WatchedTable
from db_dedup.engines.embedded.candidate_texts import CandidateTexts
from db_dedup.engines.embedded.increment.prepared import Prepared
from db_dedup.engines.embedded.neighbourhood import Neighbourhood
from db_dedup.flow.candidates.fingerprint_index import FingerprintIndex
from db_dedup.flow.pipeline import Fingerprinter
from db_dedup.flow.rows.order import Receipt, receipt
from db_dedup.records import Family
from db_dedup.records.fingerprints import AnswerRow, DigestPair, RowFingerprint
from db_dedup.store.fingerprints import FingerprintStore
from db_dedup.store.labels import rejected_among
from db_dedup.store.source import Source


@dataclass(frozen=True)
class BatchScope:
    """One batch: the table, the transaction, and the rows that the steps have loaded.

    Attributes:
        connection: in a transaction that holds the lock of the table.
        now: the time to store with the pairs of this batch.
        source: the user's table.
        families: of its key columns, in their order.
        index: all fingerprints in memory; None if each search queries the database.
        rows: the stored rows around the changes.
        texts: the texts of changed rows and candidates.
        prepared: what was computed of the batch before the table was locked; None if nothing was.
    """

    connection: Connection
    now: datetime
    watched: WatchedTable
    store: FingerprintStore
    source: Source
    families: Sequence[Family]
    fingerprinter: Fingerprinter
    index: FingerprintIndex | None
    rows: Neighbourhood
    texts: CandidateTexts
    prepared: Prepared | None = None

    def received(self, row: AnswerRow | RowFingerprint) -> Receipt:
        """Return what sorts a row by the order in which the rows were received."""
        return receipt(row.order_value, row.row_key, self.families)

    def canonical_rows(self) -> list[AnswerRow]:
        """Return the loaded rows that are no exact duplicates of another row."""
        return [row for row in self.rows if row.copy_of is None]

    def searchable(self, ids: Collection[int]) -> list[AnswerRow]:
        """Return those of some loaded rows that have a fingerprint, by id."""
        rows = (self.rows[i] for i in sorted(ids))
        return [row for row in rows if row.fingerprint is not None]

    def rejected_texts(self, rows: Collection[AnswerRow]) -> set[DigestPair]:
        """Return the pairs of texts of these rows that people have labelled as no duplicates."""
        digests = {row.digest for row in rows}
        return rejected_among(self.connection, self.store.tables, self.store.table_id, digests)

    def rejected_ids(self, rows: Collection[AnswerRow]) -> list[tuple[int, int]]:
        """Return the pairs of these canonical rows that people have labelled as no duplicates, as ids."""
        id_of = {row.digest: row.id for row in rows}
        return [(id_of[a], id_of[b]) for a, b in self.rejected_texts(rows)]
