"""`db-dedup history`: what has become of a group whose id somebody has written down."""

from dataclasses import asdict
from typing import Annotated

import typer

from db_dedup.cli.shared.options import (
    DEFAULT_CONFIG,
    MOST,
    AsJson,
    Config,
    StoreUrl,
    TableName,
    Url,
    open_table,
)
from db_dedup.cli.shared.output import data_output, print_json, print_table
from db_dedup.cli.shared.terminal import say
from db_dedup.errors import RowNotFoundError
from db_dedup.present.history_words import author, history_lines, kind_word, moment
from db_dedup.translation import tr

COLUMNS = ("changed_at", "by", "kind", "group_id", "size", "moved", "new_group_id", "new_size")


def history(
    table: TableName,
    group_id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="An id of a group, as it was written down.")
    ] = None,
    config: Config = DEFAULT_CONFIG,
    url: Url = None,
    store_url: StoreUrl = None,
    limit: Annotated[
        int,
        typer.Option(
            envvar="DB_DEDUP_LIMIT", min=1, max=MOST, help="Without ID: the latest so many changes."
        ),
    ] = 50,
    as_json: AsJson = False,
) -> None:
    """Print what has become of the group of TABLE that had the id ID, or the latest changes of all ids.

    The id of a group is the row key of its representative, so it changes when groups are merged or split, or
    the representative is deleted or edited.
    """
    with open_table(config, url, table, store=store_url) as dedup:
        if group_id is None:
            changes = dedup.group_changes(limit)
            if as_json:
                print_json([asdict(change) for change in changes])
                return
            if not changes:
                say("{table}: no changes of the ids of groups are stored", table=table)
                return
            rows = (
                (
                    *(moment(change.changed_at), tr(author(change.scan)), tr(kind_word(change.kind))),
                    *(change.group_id, change.size, change.moved, change.new_group_id, change.new_size),
                )
                for change in changes
            )
            print_table(COLUMNS, rows)
            return
        found = dedup.group_history(group_id)
    if not found.is_known and found.row_group_id is None:
        raise RowNotFoundError(
            "no group of {table!r} has the id {group_id!r}, and none had it as long as changes are kept",
            table=table,
            group_id=group_id,
        )
    if as_json:
        print_json({**asdict(found), "sentences": list(history_lines(found))})
        return
    for line in history_lines(found):
        data_output().write(tr(line) + "\n")
