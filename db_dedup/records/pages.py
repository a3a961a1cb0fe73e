"""Items in order, cut into lists by number, or into pages by characters as well: a row may hold megabytes.

Statements to a database are cut by `dialects.batches`, which ends a list before the item that would be too
much. A page here ends with that item, so that none is read before its page is asked for.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, TypeVar

_Item = TypeVar("_Item")

PAGE_CHARACTERS: Final = 1_000_000
"""A page of rows ends with the row that brings it to so many."""


def take_lists(items: Iterable[_Item], most: Callable[[], int]) -> Iterator[list[_Item]]:
    """Yield items list by list; `most` is asked before each list how many items it may have."""
    iterator = iter(items)
    while some := list(islice(iterator, most())):
        yield some


def cut_pages(
    items: Iterable[_Item],
    length_of: Callable[[_Item], int],
    most_items: int,
    most_characters: int | None = None,
) -> Iterator[list[_Item]]:
    """Yield items page by page; none is taken before the page that it belongs to is asked for.

    Args:
        items: in their order.
        length_of: how many characters an item has.
        most_items: a page has no more.
        most_characters: a page ends with the item that brings it to so many; `PAGE_CHARACTERS` if left out.
    """
    most_characters = PAGE_CHARACTERS if most_characters is None else most_characters
    page: list[_Item] = []
    characters = 0
    for item in items:
        page.append(item)
        characters += length_of(item)
        if len(page) == most_items or characters >= most_characters:
            yield page
            page, characters = [], 0
    if page:
        yield page


def cut_fetched(
    fetched: Iterable[tuple[Sequence[_Item], Sequence[int]]], most_items: int
) -> Iterator[list[_Item]]:
    """Yield items page by page, cut where `cut_pages` cuts; they come several at a time.

    Args:
        fetched: (items, how many characters each has).
        most_items: a page has no more.
    """
    page: list[_Item] = []
    characters = 0
    for items, lengths in fetched:
        if len(page) + len(items) < most_items and characters + sum(lengths) < PAGE_CHARACTERS:
            page += items
            characters += sum(lengths)
            continue
        for item, length in zip(items, lengths, strict=True):
            page.append(item)
            characters += length
            if len(page) == most_items or characters >= PAGE_CHARACTERS:
                yield page
                page, characters = [], 0
    if page:
        yield page
