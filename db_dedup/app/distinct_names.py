"""Names for the columns of a table that are written beside ours; no two are equal, whatever their case."""

from collections.abc import Sequence


def distinct_names(columns: Sequence[str], ours: Sequence[str]) -> list[str]:
    """Return the names of a table's columns; one that is taken, as by one of ours, is prefixed with own_."""
    taken = {name.casefold() for name in ours}
    others = {name.casefold() for name in columns}
    names = []
    for column in columns:
        name = column
        while name.casefold() in taken:
            name = f"own_{name}"
            while name.casefold() in others:
                name = f"own_{name}"
        taken.add(name.casefold())
        names.append(name)
    return names
