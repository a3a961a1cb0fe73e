"""The digests of former recipe versions: a label that was given under one of them is found by that digest.

A change that raises RECIPE_VERSION adds a function here that computes the digests as before, and its line in
`_FORMER`. A function is never removed: a database may skip versions. Tests compare each with stored values.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from db_dedup.flow.rows.digest import digest_columns
from db_dedup.flow.text.compared import compared_columns
from db_dedup.flow.text.normalise import fold_batch, normalise_batch
from db_dedup.records import SourceRow
from db_dedup.records.recipe import RECIPE_VERSION, Recipe

DigestRows = Callable[[Recipe, Sequence[SourceRow]], list[bytes]]


def _current(recipe: Recipe, rows: Sequence[SourceRow]) -> list[bytes]:
    """Return the digest of each row's text; a row without any feature has one, too."""
    values = [row.values for row in rows]
    columns = compared_columns(recipe.columns, recipe.normaliser, values)
    return digest_columns(columns, [row.within for row in rows])


def digest_as_of(recipe_version: int, recipe: Recipe, rows: Sequence[SourceRow]) -> list[bytes]:
    """Return the digest of each row's text as that version of the recipes computed it.

    Args:
        recipe_version: a version that this program knows.
        recipe: the settings.
        rows: rows with the columns of these settings.
    """
    return (_current if recipe_version == RECIPE_VERSION else _FORMER[recipe_version])(recipe, rows)


def _version_1(recipe: Recipe, rows: Sequence[SourceRow]) -> list[bytes]:
    """Return the digests of version 1, which normalised values as texts and so collapsed links and masks."""
    columns = [
        normalise_batch(
            [row.values[i] for row in rows],
            "plain" if column.kind == "value" else recipe.normaliser,
            unites_variants=False,
            as_before=True,
        )
        for i, column in enumerate(recipe.columns)
    ]
    return digest_columns(columns, [row.within for row in rows])


def _version_2(recipe: Recipe, rows: Sequence[SourceRow]) -> list[bytes]:
    """Return the digests of version 2, which kept traditional characters and numerals as they are."""
    return _with_posts_as_before(recipe, rows, unites_variants=False)


def _version_3(recipe: Recipe, rows: Sequence[SourceRow]) -> list[bytes]:
    """Return the digests of version 3, which knew fewer forms of posts, and took some words for forms."""
    return _with_posts_as_before(recipe, rows, unites_variants=True)


def _with_posts_as_before(recipe: Recipe, rows: Sequence[SourceRow], *, unites_variants: bool) -> list[bytes]:
    columns = []
    for i, column in enumerate(recipe.columns):
        texts = [row.values[i] for row in rows]
        columns.append(
            fold_batch(texts)
            if column.kind == "value"
            else normalise_batch(texts, recipe.normaliser, unites_variants=unites_variants, as_before=True)
        )
    return digest_columns(columns, [row.within for row in rows])


_FORMER: Final[Mapping[int, DigestRows]] = {1: _version_1, 2: _version_2, 3: _version_3}
