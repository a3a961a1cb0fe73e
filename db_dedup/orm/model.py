"""What a check needs to know of the objects of a mapped class: their columns, row keys and changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from sqlalchemy import Column, Dialect, TypeDecorator, inspect
from sqlalchemy.exc import NoInspectionAvailable
from sqlalchemy.orm import InstanceState, Mapper, Session

from db_dedup.errors import ConfigError, InvalidArgumentError
from db_dedup.orm.copied_keys import UNKNOWN, copied_keys
from db_dedup.records import CheckedColumns, Record, RowKey

_PLAIN: Final = (str, int, float, bytes, type(None))
"""Values that are stored as they are, unless the column has a type of the application's own."""

_Attribute = tuple[str, Column[Any]]
"""The name of a mapped attribute, and its column."""


class MappedModel:
    """A mapped class of an application.

    Attributes:
        mapper: of the class.
        name: of the class, for messages.
    """

    def __init__(self, model: type[Any]) -> None:
        """Raise InvalidArgumentError unless the class is mapped."""
        try:
            found = inspect(model)
        except NoInspectionAvailable:
            found = None
        if not isinstance(found, Mapper):
            raise InvalidArgumentError(
                "model should be a mapped class, not {given}", given=getattr(model, "__name__", type(model))
            )
        self.mapper: Mapper[Any] = found
        self.name = found.class_.__name__

    def to_store(self, session: Session, instances: Iterable[object] | None) -> list[Any]:
        """Return the objects of the class that a flush may store, those that are stored already first.

        Args:
            session: that is flushed.
            instances: the only objects to flush; None for all.
        """
        chosen = None if instances is None else set(map(id, instances))
        changed = [*session.dirty, *session.new]
        return [o for o in changed if self._is_ours(o) and (chosen is None or id(o) in chosen)]

    def to_delete(self, session: Session) -> list[Any]:
        """Return the objects of the class that a flush will delete."""
        return list(filter(self._is_ours, session.deleted))

    def _is_ours(self, instance: object) -> bool:
        return isinstance(instance, self.mapper.class_)


class UnknownValueError(InvalidArgumentError):
    """A checked column gets its value only from the INSERT of its row, or of a related one."""


class CheckedObject:
    """An object of a mapped class, as a check sees it.

    Attributes:
        instance: the object.
    """

    def __init__(self, instance: Any, columns: CheckedColumns, dialect: Dialect) -> None:
        """Find the attributes of the checked columns.

        Raises:
            ConfigError: the class does not map one of them.
        """
        self.instance = instance
        self._state: InstanceState[Any] = inspect(instance)
        self._columns = columns
        self._dialect = dialect
        self._values = _attributes(self._state.mapper, columns.table, columns.values)
        self._copied = copied_keys(self._state)

    @property
    def has_changed(self) -> bool:
        """Whether the object is new, or one of the checked columns has changed or will in the flush."""
        return self._state.key is None or any(self._changes(name) for name, _ in self._values)

    def _changes(self, name: str) -> bool:
        if self._state.attrs[name].history.has_changes():
            return True
        return name in self._copied and bool(self._copied[name] != getattr(self.instance, name))

    def record(self) -> Record:
        """Return column name -> value, as they will be stored."""
        names = self._columns.values
        return {c: self._stored(*found) for c, found in zip(names, self._values, strict=True)}

    def row_key(self) -> RowKey | None:
        """Return the key of the stored row; of a new object the key that it has already, if any."""
        found = _attributes(self._state.mapper, self._columns.table, self._columns.key)
        values = [self._key_part(*each) for each in found]
        if any(value is None for value in values):
            return None
        return values[0] if len(values) == 1 else tuple(values)

    def _key_part(self, name: str, column: Column[Any]) -> Any:
        if self._state.key is not None:
            before = self._state.attrs[name].history.deleted
            return self._as_stored(before[0] if before else getattr(self.instance, name), column)
        value = self._value(name)
        return None if value is None or value is UNKNOWN else self._as_stored(value, column)

    def _value(self, name: str) -> Any:
        """Return the value that an attribute has in the flush; None if a new object has none."""
        if name in self._copied:
            return self._copied[name]
        return self._state.dict.get(name) if self._state.key is None else getattr(self.instance, name)

    def _stored(self, name: str, column: Column[Any]) -> Any:
        value = self._value(name)
        if value is UNKNOWN:
            raise UnknownValueError(
                "{column!r} of {model} is the key of an object that is not stored yet: flush that one first",
                column=column.name,
                model=self._state.mapper.class_.__name__,
            )
        if value is None and self._has_default(name, column) and self._set_default(name, column):
            value = getattr(self.instance, name)
        return self._as_stored(value, column)

    def _has_default(self, name: str, column: Column[Any]) -> bool:
        """Return whether None becomes the default: SQLAlchemy leaves it out of an INSERT, but for JSON."""
        is_set = name in self._state.dict and column.type.should_evaluate_none
        return self._state.key is None and not is_set

    def _set_default(self, name: str, column: Column[Any]) -> bool:
        """Give the object the default of a column, so that what is checked is what is stored.

        Returns:
            Whether the column has a default that Python computes.
        """
        default: Any = column.default
        if default is None:
            return False
        if default.is_scalar:
            value = default.arg
        elif default.is_callable:
            value = self._called(default.arg, column)
        else:  # an SQL expression or a sequence
            raise self._not_known(column)
        setattr(self.instance, name, value)
        return True

    def _called(self, default: Callable[[Any], Any], column: Column[Any]) -> Any:
        try:
            return default(None)
        except (AttributeError, TypeError):  # it asks for the context of an INSERT, which there is not yet
            raise self._not_known(column) from None

    def _not_known(self, column: Column[Any]) -> UnknownValueError:
        return UnknownValueError(
            "{column!r} of {model} has a default that is not known before the INSERT: set a value",
            column=column.name,
            model=self._state.mapper.class_.__name__,
        )

    def _as_stored(self, value: Any, column: Column[Any]) -> Any:
        """Return what a value is in the database, where Python has another type for it."""
        if hasattr(value, "__clause_element__") or hasattr(value, "compile"):
            raise InvalidArgumentError(
                "{column!r} of {model} is set to an SQL expression, which cannot be checked: set a value",
                column=column.name,
                model=self._state.mapper.class_.__name__,
            )
        is_own_type = isinstance(column.type, TypeDecorator)
        if not is_own_type and (type(value) in _PLAIN or hasattr(value, "isoformat")):
            return value
        to_database = column.type.dialect_impl(self._dialect).bind_processor(self._dialect)
        return to_database(value) if to_database and _needs_processor(value, is_own_type) else value


def _needs_processor(value: Any, is_own_type: bool) -> bool:
    return is_own_type or type(value).__module__ not in ("uuid", "decimal", "builtins")


def _attributes(mapper: Mapper[Any], table: str, names: Sequence[str]) -> list[_Attribute]:
    """Return the attributes of these columns of a table.

    Raises:
        ConfigError: the class does not map one of them.
    """
    known = dict(_mapped(mapper, table))
    missing = [name for name in names if name not in known]
    if missing:
        raise ConfigError(
            "{model} maps no column {columns} of the table {table!r}, which a check reads",
            model=mapper.class_.__name__,
            columns=", ".join(map(repr, missing)),
            table=table,
        )
    return [known[name] for name in names]


def _mapped(mapper: Mapper[Any], table: str) -> Iterator[tuple[str, _Attribute]]:
    for attribute in mapper.column_attrs:
        for column in attribute.columns:
            if isinstance(column, Column) and column.table.name == table:
                yield column.name, (attribute.key, column)
