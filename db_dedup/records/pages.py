"""Cut items into lists by their number, or into pages by their number and their characters.

A page is limited by its characters, because a row may have megabytes of text. A page ends with the item that
reaches the limit, so that no item is read before its page is asked for. Statements to a database are cut by
`dialects.batches` instead, which ends a list before the item that would exceed the limit.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, TypeVar

_Item = TypeVar("_Item")

PAGE_CHARACTERS: Final = 500_000
"""A page of rows ends with the row with which it has this many characters or more."""


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
        most_characters: a page ends with the item with which it has so many or more; `PAGE_CHARACTERS` if
            left out.
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
    """Yield items in the same pages as `cut_pages`, but take several items at a time.

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
