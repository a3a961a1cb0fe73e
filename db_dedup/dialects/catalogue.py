"""What a database's catalogue has about the user's tables and SQLAlchemy's inspection does not return."""

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection


class Catalogue:
    """The part of a dialect that completes what inspection returns; by itself it adds nothing."""

    def column_names(
        self,
        connection: Connection,  # noqa: ARG002
        table: str,  # noqa: ARG002
        schema: str | None,  # noqa: ARG002
        found: Sequence[str],
    ) -> Sequence[str]:
        """Return the names of a table's columns as they are, where inspection `found` them otherwise."""
        return found

    def column_collations(
        self,
        connection: Connection,  # noqa: ARG002
        table: str,  # noqa: ARG002
        schema: str | None,  # noqa: ARG002
    ) -> Mapping[str, str]:
        """Return collations by column, where inspection alone does not tell them."""
        return {}

    def partition_names(self, connection: Connection) -> set[str]:  # noqa: ARG002
        """Return the names of the parts of partitioned tables, where these are listed as tables."""
        return set()

    def names_found_in(self, connection: Connection, schema: str) -> set[str]:  # noqa: ARG002
        """Return the names of tables and views that a session finds in a schema that it does not name."""
        return set()

    def type_names(
        self,
        connection: Connection,  # noqa: ARG002
        table: str,  # noqa: ARG002
        schema: str | None,  # noqa: ARG002
    ) -> Mapping[str, str]:
        """Return the names of types by column, where inspection does not know them."""
        return {}

    def unique_columns(
        self,
        connection: Connection,  # noqa: ARG002
        table: str,  # noqa: ARG002
        schema: str | None,  # noqa: ARG002
        index: str | None,  # noqa: ARG002
        found: Sequence[str],
    ) -> Sequence[str]:
        """Return the columns that a unique index compares, where inspection `found` only some of them.

        Args:
            connection: to the user's database.
            table: of the index.
            schema: of the table.
            index: its name; None for that of the primary key.
            found: its columns, in their order.
        """
        return found
