"""QuerySets whose SQL is built once: for a few rows, building it takes longer than running it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.models import Expression

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models import Field, QuerySet
    from django.db.models.sql.compiler import SQLCompiler

_Row = TypeVar("_Row")


class Parameter(Expression):
    """A value that each run of a compiled QuerySet supplies."""

    def __init__(self, name: str, output_field: Field[Any, Any]) -> None:
        super().__init__(output_field)
        self.name = name

    def as_sql(
        self, _compiler: SQLCompiler, connection: BaseDatabaseWrapper
    ) -> tuple[str, tuple[Any, ...]]:
        """Return a placeholder, with this object in the place of the value."""
        return f"%s::{self.output_field.db_type(connection)}", (self,)


class Compiled(Generic[_Row]):
    """The SQL of a QuerySet, which any thread can run with values for its parameters.

    Args:
        columns: the QuerySet, by `values_list`. Values are as PostgreSQL sends them.
        row: what makes a row of its values.
        prepare: whether one plan suits all values; the server then plans it once per connection.
    """

    def __init__(
        self,
        columns: QuerySet[Any, tuple[Any, ...]],
        row: Callable[[tuple[Any, ...]], _Row],
        *,
        prepare: bool,
    ) -> None:
        self._sql, self._values = columns.query.sql_with_params()
        self._row = row
        self._prepare = prepare

    def run(self, **values: Any) -> list[_Row]:
        """Return the rows for values of all parameters."""
        given = tuple(
            values[value.name] if isinstance(value, Parameter) else value for value in self._values
        )
        connection: Any = connections[DEFAULT_DB_ALIAS]
        with connection.prepared_cursor() if self._prepare else connection.cursor() as cursor:
            cursor.execute(self._sql, given)
            return [self._row(values) for values in cursor.fetchall()]
