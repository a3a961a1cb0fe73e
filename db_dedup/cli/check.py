"""`db-dedup check`: is this text a duplicate?"""

import json
import sys
from dataclasses import asdict

from db_dedup.cli.options import DEFAULT_CONFIG, Config, TableName, Url, open_table
from db_dedup.cli.output import print_json
from db_dedup.cli.terminal import say
from db_dedup.errors import ConfigError


def check(table: TableName, config: Config = DEFAULT_CONFIG, url: Url = None) -> None:
    """Read one record of TABLE as a JSON object from stdin; print the stored rows it duplicates, nearest first."""
    record = _read_record()
    result = open_table(config, url, table).check_in_full(record)
    print_json([asdict(match) for match in result.matches])
    if result.too_little_text:
        say("too little text to judge")


def _read_record() -> dict[str, object]:
    try:
        record = json.loads(sys.stdin.buffer.read().decode("utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"stdin is no JSON object: {error}") from None
    if not isinstance(record, dict):
        raise ConfigError('stdin is no JSON object: write {"column": "text", ...}')
    return record
