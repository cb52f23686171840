"""How much room data will take."""

import pytest

from ioportal.analysis.storage import Growth


@pytest.mark.parametrize(
    ("growth", "days", "expected"),
    [
        pytest.param(Growth(50, 10, None, 1), 30, 350, id="kept forever, it grows on"),
        pytest.param(Growth(50, 10, 20, 1), 5, 100, id="nothing is dropped yet"),
        pytest.param(Growth(50, 10, 20, 1), 30, 210, id="as much is dropped as comes"),
        pytest.param(Growth(900, 10, 20, 1), 5, 900, id="old logs were loaded and are still kept"),
        pytest.param(Growth(900, 10, 20, 1), 21, 210, id="and then they are gone"),
        pytest.param(Growth(50, None, 20, 1), 30, None, id="no rate is known"),
    ],
)
def test_size_after_some_days(growth, days, expected):
    assert growth.after(days) == expected
