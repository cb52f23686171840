"""QuerySets whose SQL is built once: for a few rows, building it takes longer than running it."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.models import Expression

if TYPE_CHECKING:
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
    """A QuerySet that any thread can run, with values for its parameters.

    Args:
        rows: the QuerySet.
        prepare: whether one plan suits all values; the server then plans it once per connection.
    """

    def __init__(self, rows: QuerySet[Any, _Row], *, prepare: bool) -> None:
        self._rows = rows
        self._prepare = prepare
        self._compiler = rows.query.get_compiler(DEFAULT_DB_ALIAS)
        self._sql, self._values = self._compiler.as_sql()

    def run(self, **values: Any) -> list[_Row]:
        """Return the rows for values of all parameters."""
        given = tuple(
            values[value.name] if isinstance(value, Parameter) else value for value in self._values
        )
        connection: Any = connections[DEFAULT_DB_ALIAS]
        with connection.prepared_cursor() if self._prepare else connection.cursor() as cursor:
            cursor.execute(self._sql, given)
            results = [cursor.fetchall()]
        compiler = copy(self._compiler)
        compiler.connection = connection
        compiler.execute_sql = lambda *_args, **_kwargs: results
        rows = self._rows.all()
        rows.query.get_compiler = lambda *_args, **_kwargs: compiler  # type: ignore[method-assign]
        return list(rows)
