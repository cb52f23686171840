"""Output of figures: the terminal, var/bench.json, and the table of docs/performance.md."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import connection

from bench.inputs import VAR

if TYPE_CHECKING:
    from bench.figures import Figure

_PAGE = settings.BASE_DIR / "docs/performance.md"
_BEGIN, _END = "<!-- written by make bench -->\n", "<!-- to here -->\n"
_MANY = 1_000


def show(figures: list[Figure]) -> None:
    """Print the figures."""
    width = max(len(figure.what) for figure in figures)
    for figure in figures:
        goal = f"  goal {figure.goal}: {_met(figure)}" if figure.goal else ""
        sys.stdout.write(
            f"{figure.what:<{width}}  {_value(figure):>12} {figure.unit:<8}{goal}\n".rstrip(" ")
        )


def save(figures: list[Figure]) -> None:
    """Write the figures for programs."""
    report = {
        figure.name: {
            "value": figure.value,
            "unit": figure.unit,
            "goal": figure.goal,
            "met": figure.met,
        }
        for figure in figures
    }
    (VAR / "bench.json").write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n")


def publish(figures: list[Figure]) -> None:
    """Rewrite the table of the documentation."""
    head, rest = _PAGE.read_text().split(_BEGIN)
    tail = rest.split(_END)[1]
    rows = [
        f"| {figure.what} | {_value(figure)} {figure.unit} | {figure.goal} | {_met(figure)} |"
        for figure in figures
    ]
    table = "\n".join(["| measured | value | goal | met |", "|---|---:|---|---|", *rows])
    _PAGE.write_text(f"{head}{_BEGIN}{_machine()}\n\n{table}\n{_END}{tail}")


def _value(figure: Figure) -> str:
    return f"{figure.value:,.0f}" if figure.value >= _MANY else f"{figure.value:.2f}"


def _met(figure: Figure) -> str:
    return {True: "yes", False: "no", None: ""}[figure.met]


def _machine() -> str:
    """Return the conditions of the measurement other than the code."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT extversion FROM pg_extension WHERE extname = 'timescaledb'")
        (timescaledb,) = cursor.fetchone()
        cursor.execute("SHOW server_version")
        (postgresql,) = cursor.fetchone()
    mawk = subprocess.run(["mawk", "-W", "version"], capture_output=True, text=True, check=True)
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    facts = [
        f"{os.cpu_count()} cores ({platform.machine()})",
        f"{memory_gib:.0f} GiB of memory",
        f"Python {platform.python_version()}",
        f"polars {version('polars')}",
        f"PostgreSQL {postgresql.split()[0]}",
        f"TimescaleDB {timescaledb}",
        mawk.stdout.split(",")[0].splitlines()[0],
    ]
    return f"Measured with {', '.join(facts)}."
