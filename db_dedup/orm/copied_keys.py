"""The foreign keys of an object that a flush will copy from the objects it refers to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from sqlalchemy import ColumnElement
from sqlalchemy.orm import InstanceState, RelationshipDirection, RelationshipProperty

UNKNOWN: Final = object()
"""In place of a key that a related object gets from the same flush."""


def copied_keys(state: InstanceState[Any]) -> dict[str, Any]:
    """Return name of an attribute -> value that the flush will copy to it, as SQLAlchemy does.

    SQLAlchemy copies the key of the related object when a many-to-one relationship has changed, in the flush
    itself, so before it the attribute still has the former value, or none.

    Args:
        state: of an object in a session.

    Returns:
        The values; None where the relationship was emptied, `UNKNOWN` where the related object has no key
        yet.
    """
    return {name: value for each in state.mapper.relationships for name, value in _copied(state, each)}


def _copied(state: InstanceState[Any], relationship: RelationshipProperty[Any]) -> Iterator[tuple[str, Any]]:
    if relationship.direction is not RelationshipDirection.MANYTOONE or relationship.viewonly:
        return
    history = state.attrs[relationship.key].history
    if not history.has_changes():
        return
    related = history.added[0] if history.added else None
    if related is not None and (state.session is None or related not in state.session):
        return  # SQLAlchemy warns, and copies nothing
    for source, target in relationship.synchronize_pairs:
        value = None if related is None else _key_of(relationship, related, source)
        yield state.mapper.get_property_by_column(target).key, value


def _key_of(relationship: RelationshipProperty[Any], related: Any, column: ColumnElement[Any]) -> Any:
    value = getattr(related, relationship.mapper.get_property_by_column(column).key)
    return UNKNOWN if value is None else value
