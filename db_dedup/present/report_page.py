"""The duplicates of a table as one page of HTML that needs no other file, for people without access."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import Final

from db_dedup.plurals import counted
from db_dedup.present.bars import Bar, columns_of_bars, legend, rows_of_bars
from db_dedup.present.history_words import author, kind_word, moment
from db_dedup.present.html_page import heading, page, paragraph, table
from db_dedup.present.texts import Member
from db_dedup.present.visible import one_line, visible
from db_dedup.records import GroupSummary, PastScan
from db_dedup.records.group_history import CHANGE_KINDS, GroupChange
from db_dedup.records.kinds import Kind
from db_dedup.records.reports import SIMILARITY_BINS, RepeatCount, TableReport
from db_dedup.translation import RULE, STATUS, Phrase, language, named, tr

_KINDS: Final[dict[Kind, str]] = {
    "copy": "copy",
    "edited": "edited",
    "contained": "contained",
    "partial": "partial",
}
_KIND_NOTE: Final = (
    "Copy: the same text again. Edited: the same text with changes. Contained: one text is part of the "
    "other. Partial: a part of both is the same."
)
_MONTH: Final = re.compile(r"\d{4}-(0[1-9]|1[0-2])", re.ASCII)
_LONGEST_TEXT: Final = 400
_LONGEST_KEY: Final = 40
_MOST_MONTHS: Final = 120


@dataclass(frozen=True)
class ShownGroups:
    """Some of the largest groups, and rows of them; no rows if texts are not to be shown.

    Attributes:
        columns: the names of the texts of a row.
        members: rows of these groups, group by group, the representative first.
    """

    groups: Sequence[GroupSummary]
    columns: Sequence[str] = ()
    members: Sequence[Member] = ()


def report_page(found: TableReport, shown: ShownGroups) -> str:
    """Return the page; it holds texts of rows only if `shown` has members."""
    return page(tr("Duplicates in {table}", table=found.table), _parts(found, shown))


def _parts(found: TableReport, shown: ShownGroups) -> Iterator[str]:
    yield paragraph("As of {moment}. {rule}", moment=moment(found.made_at), rule=_rule_words(found))
    yield table((), _head_figures(found))
    yield from _answer_plots(found)
    yield from _row_plots(found)
    yield from _largest(shown)
    yield from _to_review(found)
    yield from _scans(found.status.scans)
    yield from _changed_ids(found)


def _rule_words(found: TableReport) -> str:
    preset = (
        tr("settings of its own") if found.preset is None else tr("the preset {preset}", preset=found.preset)
    )
    if found.rule is None:
        return tr("The table is compared by {preset}, by fingerprints alone.", preset=preset)
    measure, threshold = found.rule
    return tr(
        "The table is compared by {preset}: {measure} of at least {threshold:g}.",
        preset=preset,
        measure=named(RULE, measure, language()),
        threshold=threshold,
    )


def _head_figures(found: TableReport) -> Iterator[tuple[str, str]]:
    status = found.status
    yield tr("rows"), f"{status.rows:,}"
    yield tr("rows that repeat an earlier one"), _of(found.repeats, status.rows)
    yield tr("of these, exact duplicates"), _of(status.copies, found.repeats)
    yield tr("groups of duplicates"), f"{status.groups:,}"
    yield tr("rows in groups"), _of(status.grouped_rows, status.rows)
    yield tr("rows of the largest group"), f"{status.largest_group:,}"
    yield tr("pairs, exact duplicates not counted"), f"{status.pairs:,}"
    yield tr("pairs that name different places"), _of(found.other_place_pairs, status.pairs)
    yield tr("loose groups"), f"{status.loose_groups:,}"
    yield tr("rows with too little text to judge"), _of(status.too_little_text, status.rows)
    yield tr("changes that wait"), f"{status.queue_length:,}"


def _answer_plots(found: TableReport) -> Iterator[str]:
    sizes = [Bar(tr("{label} rows", label=label), count) for label, count in found.status.group_sizes.items()]
    yield from _plot(tr("Groups by size"), rows_of_bars(tr("Groups by size"), sizes), found.status.groups)
    kinds = [Bar(tr(_KINDS[kind]), count) for kind, count in found.kinds.items()]
    yield from _plot(
        tr("Pairs by kind"),
        rows_of_bars(tr("Pairs by kind"), kinds),
        sum(found.kinds.values()),
        tr(_KIND_NOTE),
    )
    if found.similarities:
        bins = [Bar(f"{i / SIMILARITY_BINS:.2f}", count) for i, count in enumerate(found.similarities)]
        first = next(i for i, bar in enumerate(bins) if bar.amount)
        plot = columns_of_bars(tr("Pairs by similarity"), tr("similarity, from"), bins[first:])
        yield from _plot(tr("Pairs by similarity"), plot, note=tr("Exact duplicates are not counted."))
    if found.distances:
        counts = [Bar(str(bits), found.distances.get(bits, 0)) for bits in range(max(found.distances) + 1)]
        plot = columns_of_bars(tr("Pairs by distance"), tr("bits of the fingerprints that differ"), counts)
        yield from _plot(tr("Pairs by distance"), plot, note=tr("Exact duplicates are not counted."))


def _row_plots(found: TableReport) -> Iterator[str]:
    meaning = legend(tr("rows"), tr("of these, rows that repeat an earlier one"))
    note = tr("Beside each bar: the share that repeats an earlier row, and the number of rows.")
    months = _months(found.months)
    if len(months) > 1:
        by_year = len(months[0].label) == len("2024")
        title = tr("Rows by year" if by_year else "Rows by month")
        axis = tr("year of receipt" if by_year else "month of receipt")
        yield from _plot(title, meaning + columns_of_bars(title, axis, months))
    for column, counts in found.values.items():
        bars = [Bar(_short(count.label), count.rows, _share_words(count), count.repeats) for count in counts]
        title = tr("Rows by {column}", column=visible(column))
        yield from _plot(title, meaning + rows_of_bars(title, bars), len(bars), note)


def _plot(title: str, plot: str, count: int = 1, note: str = "") -> Iterator[str]:
    if count:
        yield f"<h2>{escape(title)}</h2>"
        yield from ([f"<p>{escape(note)}</p>"] if note else [])
        yield plot


def _months(months: Sequence[RepeatCount]) -> list[Bar]:
    """Return a bar for each month, also for one without rows; a bar for each year if these are too many.

    SQLite takes any text for a date: one that does not begin with a year is left out.
    """
    in_order = {str(m.label): (m.rows, m.repeats) for m in months if str(m.label)[:4].isdigit()}
    names = list(_month_names(*in_order))
    if not names or len(names) > _MOST_MONTHS:
        years: dict[str, tuple[int, int]] = {}
        for month, (rows, repeats) in in_order.items():
            before = years.get(month[:4], (0, 0))
            years[month[:4]] = before[0] + rows, before[1] + repeats
        in_order, names = years, list(years)
    return [Bar(name, *_counts(in_order.get(name, (0, 0)))) for name in names]


def _counts(of: tuple[int, int]) -> tuple[int, str, int]:
    return of[0], "", of[1]


def _month_names(*months: str) -> Iterator[str]:
    """Yield all months from the first of these to the last; nothing if one of them is no month."""
    if not months or not all(map(_MONTH.fullmatch, months)):
        return
    start, end = (int(month[:4]) * 12 + int(month[5:]) - 1 for month in (min(months), max(months)))
    for number in range(start, end + 1):
        yield f"{number // 12:04}-{number % 12 + 1:02}"


def _largest(shown: ShownGroups) -> Iterator[str]:
    if not shown.groups:
        return
    yield heading("Largest groups")
    rows = (
        (_short(group.group_id), f"{group.size:,}", *_flags(group.is_loose, group.is_abridged))
        for group in shown.groups
    )
    yield table((Phrase("representative"), Phrase("rows"), Phrase("loose"), Phrase("abridged")), rows)
    for group_id, members in groupby(shown.members, key=lambda member: member.group_id):
        yield from _texts(group_id, list(members), shown)


def _texts(group_id: str, members: Sequence[Member], shown: ShownGroups) -> Iterator[str]:
    size = next(group.size for group in shown.groups if group.group_id == group_id)
    yield heading("Group {group}: {rows}", 3, group=_short(group_id), rows=counted(size, "row"))
    for member in members:
        template = "Row {key} (representative)" if member.is_representative else "Row {key}"
        yield f"<blockquote><b>{escape(tr(template, key=_short(member.row_key)))}</b>"
        if member.text is None:
            yield f"<p><i>{escape(tr('gone since the last scan'))}</i></p>"
        for name, value in zip(shown.columns, member.text or (), strict=False):
            yield f"<p><b>{escape(visible(name))}:</b> {escape(_short(one_line(value), _LONGEST_TEXT))}</p>"
        yield "</blockquote>"
    if size > len(members):
        yield paragraph("And {rows:,} more.", rows=size - len(members))


def _to_review(found: TableReport) -> Iterator[str]:
    if found.loose:
        yield heading("Loose groups")
        yield paragraph("Some row of such a group is not similar to its representative. Look at these first.")
        yield table(
            (Phrase("representative"), Phrase("rows")),
            ((_short(key), f"{size:,}") for key, size in found.loose),
        )
    if found.other_places:
        yield heading("Different places")
        yield paragraph("Groups with pairs of which each text names a place that the other does not.")
        rows = ((_short(g.group_id), f"{g.size:,}", f"{g.pairs:,}") for g in found.other_places)
        yield table((Phrase("representative"), Phrase("rows"), Phrase("such pairs")), rows)


def _scans(scans: Sequence[PastScan]) -> Iterator[str]:
    if scans:
        yield heading("Last scans")
        yield paragraph("Pairs and groups as a scan changed them, exact duplicates included.")
        header = (
            Phrase("began (UTC)"),
            Phrase("state"),
            Phrase("seconds"),
            Phrase("rows"),
            Phrase("new pairs"),
            Phrase("lost pairs"),
            Phrase("groups changed"),
        )
        yield table(header, map(_scan_row, scans))


def _scan_row(scan: PastScan) -> tuple[str, ...]:
    numbers = (scan.rows, scan.pairs_gained, scan.pairs_lost, scan.groups_changed)
    shown = ("" if number is None else f"{number:,}" for number in numbers)
    return (
        f"{scan.started_at:%Y-%m-%d %H:%M}",
        named(STATUS, scan.state, language()),
        f"{scan.seconds:,.1f}",
        *shown,
    )


def _changed_ids(found: TableReport) -> Iterator[str]:
    if not found.changed_ids:
        return
    yield heading("Changed ids of groups")
    yield paragraph(
        "The id of a group is the row key of its representative. `db-dedup history` finds an old id."
    )
    kinds = tuple(tr(kind_word(kind)) for kind in CHANGE_KINDS)
    header = (tr("by"), tr("last one (UTC)"), *kinds)
    counts = ((each, [each.ids.get(kind, 0) for kind in CHANGE_KINDS]) for each in found.changed_ids)
    yield table(
        header,
        (
            (tr(author(each.scan)), f"{each.last_at:%Y-%m-%d %H:%M}", *(f"{count:,}" for count in of))
            for each, of in counts
        ),
    )
    yield paragraph("The latest of them:")
    header = (
        *(tr("changed (UTC)"), tr("by"), tr("kind"), tr("former id"), tr("rows")),
        *(tr("rows moved"), tr("new id"), tr("rows of it")),
    )
    yield table(header, map(_change_row, found.latest_changes))


def _change_row(change: GroupChange) -> tuple[str, ...]:
    return (
        *(f"{change.changed_at:%Y-%m-%d %H:%M}", tr(author(change.scan)), tr(kind_word(change.kind))),
        *(_short(change.group_id), f"{change.size:,}", f"{change.moved:,}"),
        "" if change.new_group_id is None else _short(change.new_group_id),
        "" if change.new_size is None else f"{change.new_size:,}",
    )


def _flags(*flags: bool) -> Iterator[str]:
    return (tr("yes") if flag else "" for flag in flags)


def _share_words(count: RepeatCount) -> str:
    return tr("{share:.1%} of {rows:,}", share=count.repeats / count.rows, rows=count.rows)


def _of(part: int, whole: int) -> str:
    return f"{part:,} ({part / whole:.1%})" if whole else f"{part:,}"


def _short(words: str | None, longest: int = _LONGEST_KEY) -> str:
    if words is None:
        return tr("(none)")
    shown = visible(words)
    if not shown.strip():
        return tr("(empty)")
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"
