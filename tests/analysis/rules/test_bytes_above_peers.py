"""Ten times what others of its name read."""

import pytest

from ioportal.analysis.rules import BYTES_ABOVE_PEERS

AT_THRESHOLDS = {"read_bytes": 50e9, "namesakes": 20, "namesakes_read_bytes": 5e9}


@pytest.mark.parametrize(
    ("changed", "is_found"),
    [
        pytest.param({}, True, id="at every threshold"),
        pytest.param({"read_bytes": 49e9, "namesakes_read_bytes": 4e9}, False, id="fewer bytes"),
        pytest.param({"namesakes": 19}, False, id="too few to compare with"),
        pytest.param({"namesakes_read_bytes": 5.1e9}, False, id="its like read much, too"),
        pytest.param({"namesakes_read_bytes": None}, False, id="no peers"),
    ],
)
def test_it_takes_all_thresholds(found, changed, is_found):
    numbers = found(BYTES_ABOVE_PEERS, **{**AT_THRESHOLDS, **changed})

    assert (numbers is not None) is is_found
