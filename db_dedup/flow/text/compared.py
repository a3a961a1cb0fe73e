"""The columns of rows as they are compared: normalised."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from db_dedup.flow.text.normalise import fold_batch, normalise_batch, normalise_posts
from db_dedup.records.forms import UNKNOWN_FORM
from db_dedup.records.recipe import RecipeColumn


class ComparedColumns(NamedTuple):
    """The texts of n rows as they are compared.

    Attributes:
        texts: column by column n texts.
        forms: int8[n], the number of each row's form, the strongest of its texts; `UNKNOWN_FORM` where the
            normaliser knows no forms.
    """

    texts: list[list[str]]
    forms: NDArray[np.int8]


def compared_rows(
    columns: Sequence[RecipeColumn], normaliser: str, rows: Sequence[Sequence[str]]
) -> ComparedColumns:
    """Return the texts of these rows as they are compared, and the forms that were left out of them.

    A value keeps its links and masks, and whatever looks like a form.
    """
    texts: list[list[str]] = []
    forms = np.full(len(rows), UNKNOWN_FORM, np.int8)
    for i, column in enumerate(columns):
        own = [row[i] for row in rows]
        if column.kind == "value":
            texts.append(fold_batch(own))
        elif normaliser == "tweet":
            cleaned, own_forms = normalise_posts(own)
            texts.append(cleaned)
            forms = np.maximum(forms, np.array(own_forms, np.int8))
        else:
            texts.append(normalise_batch(own, normaliser))
    return ComparedColumns(texts, forms)


def compared_columns(
    columns: Sequence[RecipeColumn], normaliser: str, rows: Sequence[Sequence[str]]
) -> list[list[str]]:
    """Return column by column the texts of these rows as they are compared."""
    return compared_rows(columns, normaliser, rows).texts
