"""The work of requests, by their usual times."""

import polars as pl
import pytest

from ioportal.load.impact.demand import with_work

KNOWN, UNKNOWN = 101, 36  # opcodes


def test_requests_without_a_usual_time_count_as_slow_as_others():
    """The server serves known requests four times as slowly as usual, in the first second."""
    rows = pl.DataFrame(
        [
            (1, KNOWN, 10.0, 4_000.0),
            (1, UNKNOWN, 5.0, 9_000.0),
            (2, KNOWN, 10.0, 500.0),
            (2, UNKNOWN, 2.0, 100.0),
            (3, UNKNOWN, 1.0, 50.0),
        ],
        ["start", "opcode", "requests", "service_us"],
        orient="row",
    ).with_columns(server=1, service=1)
    usual = pl.DataFrame({"server": 1, "service": 1, "opcode": KNOWN, "baseline_us": 100.0})

    work_us = with_work(rows, usual)["work_us"].to_list()

    assert work_us == pytest.approx([1_000, 2_250, 1_000, 100, 50])
