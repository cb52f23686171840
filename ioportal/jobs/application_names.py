"""Application names: names of jobs without the numbers of single jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

_NUMBER = r"\p{Nd}+"
_ENDING = r"[^\p{Alphabetic}]+$"  # trailing numbers and punctuation


def application_name(name: pl.Expr) -> pl.Expr:
    """Return the application name of a job's name: ``uq_sweep`` of ``uq_sweep_34``.

    Numbers within a name become asterisks: ``scan_7_post`` is of ``scan_*_post``.
    """
    return name.str.replace_all(_NUMBER, "*").str.replace(_ENDING, "")


def application_name_sql(column: str) -> str:
    """Return the SQL expression of `application_name`."""
    return rf"regexp_replace(regexp_replace({column}, '\d+', '*', 'g'), '[^[:alpha:]]+$', '')"
