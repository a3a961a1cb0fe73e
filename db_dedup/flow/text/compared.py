"""The columns of rows as they are compared: normalised."""

from collections.abc import Sequence

from db_dedup.flow.text.normalise import fold_batch, normalise_batch
from db_dedup.records.recipe import RecipeColumn


def compared_texts(column: RecipeColumn, texts: Sequence[str], normaliser: str) -> list[str]:
    """Return the texts of one column as they are compared; a value keeps its links and masks."""
    return fold_batch(texts) if column.kind == "value" else normalise_batch(texts, normaliser)


def compared_columns(
    columns: Sequence[RecipeColumn], normaliser: str, rows: Sequence[Sequence[str]]
) -> list[list[str]]:
    """Return column by column the texts of these rows as they are compared."""
    return [compared_texts(column, [row[i] for row in rows], normaliser) for i, column in enumerate(columns)]
