"""Helpers to parse counters, and to add them up independently."""

import io
import subprocess
from pathlib import Path

import polars as pl
import pytest

from collectors import tables
from collectors.parsed import Account
from collectors.source import Source

REPOSITORY = Path(__file__).parents[3]
FIXTURES = REPOSITORY / "tests" / "fixtures"
SAMPLES = REPOSITORY.parent / "shared" / "samples"


def read(module, table, text, chunk_bytes=1 << 25):
    """Parse a text; return all rows, all rejects and the account."""
    parts = list(module.parse(Source(io.BytesIO(text), "a text", chunk_bytes)))
    rows = pl.concat([table.empty(), *(part.table for part in parts)])
    rejects = pl.concat([tables.REJECTS.empty(), *(part.rejects for part in parts)])
    return rows, rejects, sum((part.account for part in parts), Account())


def samples(folder, pattern="*"):
    """Return one test case per sample file, or one skipped case without samples."""
    paths = sorted((SAMPLES / folder).glob(pattern))
    missing = pytest.mark.skip(reason=f"{SAMPLES.name}/{folder} is not present")
    return [pytest.param(p, id=p.name) for p in paths] or [pytest.param(None, marks=missing)]


def awk(program, text):
    """Return the numbers that an awk program prints."""
    done = subprocess.run(["/usr/bin/awk", program], input=text, capture_output=True, check=True)
    return [int(word) for word in done.stdout.split()]


def row_sum(rows, columns):
    return int(rows.select(pl.sum_horizontal(pl.col(*columns).sum())).item() or 0)
