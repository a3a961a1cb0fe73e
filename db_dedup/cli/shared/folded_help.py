"""Have help fold words that are too long for its columns; rich would cut them off.

Such words are names of environment variables, and Chinese texts, which have no spaces. This module takes long
to import, and only help needs it.
"""

from typing import Any

from rich.columns import Columns
from rich.table import Table
from rich.text import Text
from typer import rich_utils


class _FoldingTable(Table):
    def __rich_console__(self, *where: Any) -> Any:
        for column in self.columns:
            column.overflow = "fold"
        return super().__rich_console__(*where)


class _FoldingColumns(Columns):
    def __rich_console__(self, *where: Any) -> Any:
        for text in self.renderables:
            if isinstance(text, Text):
                text.overflow = "fold"
        return super().__rich_console__(*where)


def fold_help() -> None:
    """Have typer make help of tables and columns that fold."""
    vars(rich_utils).update(Table=_FoldingTable, Columns=_FoldingColumns)
