"""What has become of labels, in words."""

from collections.abc import Iterator

from db_dedup.plurals import counted
from db_dedup.records import RepeatedLabels
from db_dedup.translation import tr


def repeated_lines(repeated: RepeatedLabels) -> Iterator[str]:
    """Say how many labels do not count, if there are any."""
    if repeated.count:
        yield tr(
            "{labels} out, because a later label of the same pair counts; {opposite} the opposite",
            labels=counted(repeated.count, "label was left", "labels were left"),
            opposite=counted(repeated.opposite, "of them says", "of them say"),
        )
