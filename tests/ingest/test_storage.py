"""Forecasts of table sizes."""

import pytest

from ioportal.ingest.storage import Growth


@pytest.mark.parametrize(
    ("growth", "days", "expected"),
    [
        pytest.param(Growth(50, 10, None, 1), 30, 350, id="no retention limit"),
        pytest.param(Growth(50, 10, 20, 1), 5, 100, id="before the first drop"),
        pytest.param(Growth(50, 10, 20, 1), 30, 210, id="steady size"),
        pytest.param(Growth(900, 10, 20, 1), 5, 900, id="old rows not yet dropped"),
        pytest.param(Growth(900, 10, 20, 1), 21, 210, id="old rows dropped"),
        pytest.param(Growth(50, None, 20, 1), 30, None, id="unknown growth"),
    ],
)
def test_size_after_some_days(growth, days, expected):
    assert growth.after(days) == expected
