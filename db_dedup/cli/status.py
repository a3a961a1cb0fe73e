"""`db-dedup status`: where each watched table stands."""

from dataclasses import asdict

from db_dedup.cli.options import DEFAULT_CONFIG, AsJson, Config, StoreUrl, Url, open_database
from db_dedup.cli.output import print_json, print_table

COLUMNS = ("table", "rows", "fingerprints", "too_little_text", "copies", "pairs", "groups", "last_scan_state",
           "last_scan_finished")  # fmt: skip


def status(
    config: Config = DEFAULT_CONFIG, url: Url = None, store_url: StoreUrl = None, as_json: AsJson = False
) -> None:
    """Show where each watched table stands."""
    with open_database(config, url, store_url) as database:
        found = [asdict(entry) for entry in database.status()]
    if as_json:
        print_json(found)
    else:
        print_table(COLUMNS, ([entry[name] for name in COLUMNS] for entry in found))
