"""`db-dedup retry`: changes that were given up come back into the queue."""

from db_dedup.cli.shared.options import DEFAULT_CONFIG, Config, StoreUrl, TableName, Url, open_table
from db_dedup.cli.shared.terminal import say
from db_dedup.plurals import counted


def retry(
    table: TableName, config: Config = DEFAULT_CONFIG, url: Url = None, store_url: StoreUrl = None
) -> None:
    """Queue the dead changes of TABLE once more, after their cause was mended."""
    with open_table(config, url, table, store=store_url) as dedup:
        count = dedup.retry()
    say("{changes} of {table} queued again", changes=counted(count, "change"), table=table)
