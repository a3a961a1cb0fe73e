"""`db-dedup detach`: drop our triggers on a table."""

from db_dedup.cli.shared.options import DEFAULT_CONFIG, Config, StoreUrl, TableName, Url, open_table
from db_dedup.cli.shared.terminal import say
from db_dedup.plurals import counted


def detach(
    table: TableName, config: Config = DEFAULT_CONFIG, url: Url = None, store_url: StoreUrl = None
) -> None:
    """Drop our triggers on TABLE and forget its queue; the answer stays as it is."""
    with open_table(config, url, table, store=store_url) as dedup:
        forgotten = dedup.detach()
    lost = counted(forgotten, "queued change is", "queued changes are")
    say("{table} is detached: it has no trigger of ours, {lost} forgotten", table=table, lost=lost)
