"""A rebuild under the recipe that serves: the sets of features beside fingerprints that stay."""

from db_dedup.jobs.scan.reading import Page
from db_dedup.jobs.scan.short_transactions import ShortTransactions
from db_dedup.store.fingerprints import FingerprintStore


def replace_sets(writing: ShortTransactions, store: FingerprintStore, page: Page) -> None:
    """Write the sets of the rows whose text is the stored one, where another set or none is stored.

    Another release of a segmenter gives a text other features. By the set of the former ones checks would
    rule it out. A row without a set, as former versions have stored it, is never ruled out, and its text is
    read; an exact duplicate needs none.
    """
    sets = {
        old.id: row.feature_set
        for row in page.rows
        if (old := page.stored.get(row.row_key)) is not None and old.digest == row.digest
    }
    for connection, ids in writing.parts(list(sets)):
        stored = store.read_feature_sets(connection, ids)
        changed = [(row_id, sets[row_id]) for row_id, packed in stored.items() if packed != sets[row_id]]
        store.dialect.bulk_update(connection, store.tables.fingerprint, "id", ("feature_set",), changed)
    writing.pause()
