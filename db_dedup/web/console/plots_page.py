"""The page of plots of a table."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Final, NamedTuple

from fastapi import APIRouter, Query
from markupsafe import Markup
from starlette.responses import Response

from db_dedup.present.bars import Bar, rows_of_bars
from db_dedup.present.visible import one_line
from db_dedup.records.review_samples import ReviewSample
from db_dedup.web.console.page_security import PREFIX
from db_dedup.web.console.site import PageRoute, Reader
from db_dedup.web.console.words import Words

router = APIRouter(route_class=PageRoute, include_in_schema=False)

_SIZES: Final = ((2, 2), (3, 3), (4, 4), (5, 9), (10, 19), (20, 49), (50, 99), (100, 999), (1000, None))
_MOST_MONTHS: Final = 24
_MOST_VALUES: Final = 15
_RADIUS: Final = 64


class Plot(NamedTuple):
    """A plot: its title, what it is made from, the picture, and the same as a table."""

    title: str
    note: str
    picture: Markup
    bars: Sequence[Bar]


@router.get(f"{PREFIX}/tables/{{table}}/plots")
async def plots(visitor: Reader, table: str, column: Annotated[str, Query(max_length=700)] = "") -> Response:
    """Show sizes, distances, months and values."""
    found = await visitor.context.threads.run(lambda: visitor.context.tables.find(table).samples.read(column))
    chosen = column if column in found.columns else next(iter(found.columns), "")
    return visitor.page(
        "plots.html",
        table=table,
        plots=list(_plots(found, visitor.words)),
        values=_values(found, chosen, visitor.words),
        columns=found.columns,
        chosen=chosen,
    )


def _plots(found: ReviewSample, words: Words) -> Iterator[Plot]:
    yield _plot(words("plots.sizes"), "", list(_sizes(found.sizes, words)), None)
    note = (
        "" if found.is_every_pair else words("plots.some_pairs", count=f"{sum(found.distances.values()):,}")
    )
    distances = [
        Bar(words("plots.bits", bits=bits), count, f"{count:,}")
        for bits, count in sorted(found.distances.items())
    ]
    yield _plot(words("plots.distances"), note, distances[:_RADIUS], None)
    months = [
        Bar(month, repeats / rows, words("plots.share", share=f"{repeats / rows:.0%}", rows=f"{rows:,}"))
        for month, (rows, repeats) in list(found.months.items())[-_MOST_MONTHS:]
    ]
    yield _plot(words("plots.months"), _rows_note(found, words), months, 1.0)


def _values(found: ReviewSample, column: str, words: Words) -> Plot:
    shown = [
        Bar(
            one_line(value) or words("plots.no_value"),
            repeats / rows,
            words("plots.share", share=f"{repeats / rows:.0%}", rows=f"{rows:,}"),
        )
        for value, (rows, repeats) in list(found.values.items())[:_MOST_VALUES]
    ]
    count = sum(rows for rows, _ in found.values.values())
    note = "" if found.is_every_value else words("plots.some_rows", count=f"{count:,}")
    return _plot(words("plots.values", column=column), note, shown, 1.0)


def _rows_note(found: ReviewSample, words: Words) -> str:
    if found.is_every_row:
        return ""
    return words("plots.some_rows", count=f"{sum(rows for rows, _ in found.months.values()):,}")


def _sizes(sizes: Mapping[int, int], words: Words) -> Iterator[Bar]:
    for low, high in _SIZES:
        count = sum(n for size, n in sizes.items() if low <= size and (high is None or size <= high))
        if count:
            label = str(low) if low == high else f"{low:,}–{high:,}" if high else f"≥ {low:,}"
            yield Bar(words("plots.rows", rows=label), count, f"{count:,}")


def _plot(title: str, note: str, found: Sequence[Bar], longest: float | None) -> Plot:
    # The picture has escaped everything itself.
    return Plot(title, note, Markup(rows_of_bars(title, found, longest)), found)  # noqa: S704
