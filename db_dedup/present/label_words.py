"""What has become of labels, in words."""

from collections.abc import Iterator

from db_dedup.plurals import counted
from db_dedup.records import LabelOutcome, RepeatedLabels
from db_dedup.translation import tr


def repeated_lines(repeated: RepeatedLabels) -> Iterator[str]:
    """Say how many labels do not count, if there are any."""
    if repeated.count:
        yield tr(
            "{labels} out, because a later label of the same pair counts; {opposite} the opposite",
            labels=counted(repeated.count, "label was left", "labels were left"),
            opposite=counted(repeated.opposite, "of them says", "of them say"),
        )


def uncounted_lines(given: LabelOutcome) -> Iterator[str]:
    """Say how many labels are not stored although nothing is wrong with them, if there are any."""
    yield from repeated_lines(given.repeated)
    if given.same_texts.count:
        yield tr(
            "{labels} out, because a later label of rows with the same two texts counts; {opposite} the "
            "opposite",
            labels=counted(given.same_texts.count, "label was left", "labels were left"),
            opposite=counted(given.same_texts.opposite, "of them says", "of them say"),
        )
    if given.exact_duplicates:
        yield tr(
            "{labels} exact duplicates, which need no label",
            labels=counted(given.exact_duplicates, "label is of", "labels are of"),
        )
