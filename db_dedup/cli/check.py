"""`db-dedup check`: is this text a duplicate?"""

import json
import sys
from typing import Final

from db_dedup.cli.shared.options import (
    DEFAULT_CONFIG,
    Config,
    Kinds,
    StoreUrl,
    TableName,
    Url,
    open_table,
)
from db_dedup.cli.shared.output import print_json
from db_dedup.cli.shared.terminal import say
from db_dedup.encodings import decode_utf8
from db_dedup.errors import ConfigError
from db_dedup.translation import Phrase

_COLUMNS: Final = ("row_key", "distance", "similarity", "group_id")
_OF_KIND: Final = ("kind", "contained_key", "other_place", "form")


def check(
    table: TableName,
    config: Config = DEFAULT_CONFIG,
    url: Url = None,
    store_url: StoreUrl = None,
    kinds: Kinds = False,
) -> None:
    """Print the stored rows of TABLE that a record duplicates, nearest first.

    The record is a JSON object on stdin: {"column": "text", ...}.
    """
    record = _read_record()
    with open_table(config, url, table, store=store_url) as dedup:
        result = dedup.check_in_full(record)
    columns = (*_COLUMNS, *_OF_KIND) if kinds else _COLUMNS
    print_json([{name: getattr(match, name) for name in columns} for match in result.matches])
    if result.too_little_text:
        say("too little text to judge")


def _read_record() -> dict[str, object]:
    text = decode_utf8(
        sys.stdin.buffer.read(), "stdin", Phrase("write it in UTF-8 (on Windows, after `chcp 65001`)")
    )
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:  # also of a number, or a nesting, beyond all limits
        raise ConfigError("stdin is no JSON object: {error}", error=error) from None
    if not isinstance(record, dict):
        raise ConfigError('stdin is no JSON object: write {"column": "text", ...}')
    return record
