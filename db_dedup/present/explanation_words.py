"""Why two rows are a duplicate pair, or why not, in words."""

from collections.abc import Iterator
from typing import Final

from db_dedup.flow.candidates.generators import SIMHASH
from db_dedup.jobs.explain.applied_rule import EDIT_SIMILARITY, EXCLUDED, NUMBERS, REJECTED, WITHIN
from db_dedup.plurals import counted
from db_dedup.present.kind_words import kind_words
from db_dedup.present.named_differences import NamedDifference, difference_lines, named_differences
from db_dedup.present.visible import visible
from db_dedup.records import Decision, ExplainedColumn, ExplainedRow, Explanation, RuleTest
from db_dedup.translation import RULE, Phrase, language, named, tr

_DECISIONS: Final = {
    Decision.COPIES: Phrase("exact duplicates: they agree in every weighted column"),
    Decision.DUPLICATE_PAIR: Phrase("a duplicate pair"),
    Decision.NO_PAIR: Phrase("not a pair"),
    Decision.TOO_LITTLE_TEXT: Phrase("too little text to judge"),
}

_STATES: Final = {
    "changed": "Row {key} has changed since it was last fingerprinted.",
    "new": "Row {key} is new since the last scan.",
}
_REASONS: Final = {
    WITHIN: "the rows differ in the columns of {name}",
    NUMBERS: "the two short texts have different numbers at the same place",
    EXCLUDED: "pairs of this kind are left out ({name})",
    REJECTED: "somebody has labelled them as no duplicates",
}
"""Test without a value -> why it excludes the pair."""

_SAME_GROUP: Final = "Groups: both are in group {group}."
_SAME_GROUP_NO_PAIR: Final = (
    "Groups: both are in group {group}, although they are no pair: other rows connect them."
)
_STORED_AGREES: Final = "Stored answer: {answer}. It agrees with the texts as they are now."
_STORED_DIFFERS: Final = "Stored answer: {answer}. It does not agree with the texts as they are now."
_ABRIDGED: Final = "no link between them: their group is abridged to the pairs that connect it"
_EDIT_SIMILARITY: Final = (
    "{passed}  {name}, since both texts are short: {value:.3f}, at least {limit:g} needed"
)
_FRAMES: Final = "Column {column} of row {key} was compared without its frame: {parts}"
_LONG_COLUMN: Final = (
    "Column {column} is long: {tokens_a:,} and {tokens_b:,} tokens of the two texts are not shown, "
    "far from the first differences. They were compared like the others."
)


def explanation_lines(explanation: Explanation) -> list[str]:
    """Explain the decision, a sentence a line."""
    shown = tr(", ").join(f"{_name(name)} {value:.3f}" for name, value in explanation.similarities.items())
    row_a, row_b = explanation.row_a, explanation.row_b
    return [
        tr(
            "Rows {key_a} and {key_b}: {decision}.",
            key_a=_key(row_a),
            key_b=_key(row_b),
            decision=_decision(explanation),
        ),
        *(f"  {_generator(generator)}" for generator in explanation.generators),
        *(f"  {_test(test, explanation)}" for test in explanation.tests),
        tr("Similarities: {similarities}.", similarities=shown),
        *_kind(explanation),
        *difference_lines(explained_differences(explanation), row_a.row_key, row_b.row_key),
        _groups(explanation),
        _stored(explanation),
        *(_left_out(column) for column in explanation.columns if column.left_out_a or column.left_out_b),
        *_frames(explanation),
        *(tr(_STATES[row.state], key=_key(row)) for row in (row_a, row_b) if row.state != "unchanged"),
    ]


def _frames(explanation: Explanation) -> Iterator[str]:
    for column in explanation.columns:
        sides = (explanation.row_a, column.frames_a), (explanation.row_b, column.frames_b)
        for row, parts in sides:
            if parts:
                shown = " ".join(tr("[{part}]", part=visible(part)) for part in parts)
                yield tr(_FRAMES, column=visible(column.name), key=_key(row), parts=shown)


def explained_differences(explanation: Explanation) -> dict[str, NamedDifference]:
    """Return the places, people, numbers and dates that only one of the two rows names."""
    texts_a, texts_b = zip(*((column.value_a, column.value_b) for column in explanation.columns), strict=True)
    return named_differences(texts_a, texts_b)


def _kind(explanation: Explanation) -> Iterator[str]:
    if explanation.kind is not None:
        yield kind_words(explanation.kind, explanation.contained_key, explanation.other_place)


def _decision(explanation: Explanation) -> str:
    said = tr(_DECISIONS[explanation.decision])
    if explanation.decision is Decision.NO_PAIR:
        return tr("{decision}: {reasons}", decision=said, reasons=tr(", and ").join(_reasons(explanation)))
    if explanation.decision is Decision.TOO_LITTLE_TEXT:
        short = tr(", ").join(
            tr("row {key} has {features}", key=_key(row), features=counted(row.features, "feature"))
            for row in (explanation.row_a, explanation.row_b)
            if row.fingerprint is None
        )
        return tr("{decision}: {rows}", decision=said, rows=short)
    return said


def _reasons(explanation: Explanation) -> Iterator[str]:
    """Say why two rows are not a pair, in as few words as possible: each test has a line of its own."""
    if not any(generator.passed for generator in explanation.generators):
        names = tr(", ").join(_name(generator.name) for generator in explanation.generators)
        yield tr("no candidate generator proposes it ({names})", names=names)
    for test in explanation.tests:
        if not test.passed:
            template = "{name} is below its limit" if test.value is not None else _REASONS[test.name]
            yield tr(template, name=_name(test.name))


def _generator(generator: RuleTest) -> str:
    if generator.value is None:
        template = "failed  {name}: a row has no fingerprint"
    elif generator.name == SIMHASH:
        template = "{passed}  {name}, radius: {value:.0f} of 64 bits differ, at most {limit:.0f} may"
    elif generator.limit and generator.limit > 1:
        template = "{passed}  {name}: {value:.0f} in common, at least {limit:.0f} wanted"
    else:
        template = "{passed}  {name}: {value:.0f} in common"
    return _filled(template, generator)


def _test(test: RuleTest, explanation: Explanation) -> str:
    if test.name == EDIT_SIMILARITY:
        return _filled(_EDIT_SIMILARITY, test)
    if test.value is not None:
        return _filled("{passed}  {name}: {value:.3f}, at least {limit:g} needed", test)
    if test.name == EXCLUDED:
        said = tr("pairs of this kind are kept" if test.passed else "pairs of this kind are left out")
        return _filled("{passed}  {name}: {said}", test, said=said)
    if test.name == NUMBERS:
        said = tr("no different numbers" if test.passed else "different numbers")
        return _filled("{passed}  {name}: the two short texts have {said} at the same place", test, said=said)
    if test.name == REJECTED:
        return _filled("{passed}  {name}: somebody has labelled them as no duplicates", test)
    return _within_test(test, explanation)


def _within_test(test: RuleTest, explanation: Explanation) -> str:
    one, other = (", ".join(map(visible, r.within)) or "-" for r in (explanation.row_a, explanation.row_b))
    if test.passed:
        return _filled("{passed}  {name}: both {one}", test, one=one)
    return _filled("{passed}  {name}: {one} and {other}", test, one=one, other=other)


def _filled(template: str, test: RuleTest, **fields: str) -> str:
    passed = tr("passed" if test.passed else "failed")
    return tr(template, passed=passed, name=_name(test.name), value=test.value, limit=test.limit, **fields)


def _name(name: str) -> str:
    """Return what a generator, a measure or another test is called."""
    return named(RULE, name, language())


def _groups(explanation: Explanation) -> str:
    a, b = explanation.row_a, explanation.row_b
    if explanation.in_same_group:
        is_pair = explanation.decision in (Decision.COPIES, Decision.DUPLICATE_PAIR)
        return tr(_SAME_GROUP if is_pair else _SAME_GROUP_NO_PAIR, group=visible(str(a.group_id)))
    return tr("Groups: {group_a}, {group_b}.", group_a=_group_of(a), group_b=_group_of(b))


def _group_of(row: ExplainedRow) -> str:
    if row.group_id:
        return tr("row {key} is in group {group}", key=_key(row), group=visible(row.group_id))
    return tr("row {key} is in no group", key=_key(row))


def _stored(explanation: Explanation) -> str:
    template = _STORED_AGREES if explanation.agrees else _STORED_DIFFERS
    return tr(template, answer=_stored_answer(explanation))


def _stored_answer(explanation: Explanation) -> str:
    link = explanation.stored
    if link is None:
        return tr(_ABRIDGED if explanation.is_abridged else "no link between them")
    if link.kind == "copies":
        said = tr("exact duplicates")
    elif link.similarity is None:
        said = tr("a pair, distance {distance}", distance=link.distance)
    else:
        said = tr(
            "a pair, distance {distance}, similarity {similarity:.3f}",
            distance=link.distance,
            similarity=link.similarity,
        )
    if link.found_at:
        said = tr("{answer}, found {found_at:%Y-%m-%d %H:%M} UTC", answer=said, found_at=link.found_at)
    copies = (
        tr(
            "; row {key} as an exact duplicate of row {canonical}",
            key=_key(row),
            canonical=visible(row.copy_of),
        )
        for row in (explanation.row_a, explanation.row_b)
        if row.copy_of
    )
    return said + "".join(copies)


def _left_out(column: ExplainedColumn) -> str:
    """Say how many tokens of a very long text are not shown; --full does not show them either."""
    return tr(
        _LONG_COLUMN, column=visible(column.name), tokens_a=column.left_out_a, tokens_b=column.left_out_b
    )


def _key(row: ExplainedRow) -> str:
    return visible(row.row_key)
