"""Idle cores during heavy I/O."""

import pytest

from ioportal.rules import LOW_CPU_EFFICIENCY

AT_THRESHOLDS = {
    "has_ended": True,
    "cpu_efficiency": 0.08,
    "core_count": 11,
    "duration_s": 3_600,
    "read_bytes": 3e11,
    "write_bytes": 2e11,
    "metadata_operations": 0,
}


@pytest.mark.parametrize(
    ("changed", "is_flagged"),
    [
        pytest.param({}, True, id="at every threshold"),
        pytest.param({"has_ended": False}, False, id="still running"),
        pytest.param({"cpu_efficiency": 0.081}, False, id="more efficient"),
        pytest.param({"core_count": 10}, False, id="fewer core-hours"),
        pytest.param({"read_bytes": 2e11}, False, id="little I/O"),
        pytest.param({"read_bytes": None, "write_bytes": None}, False, id="unknown bytes"),
        pytest.param(
            {"read_bytes": None, "metadata_operations": 250_000},
            True,
            id="many metadata operations",
        ),
        pytest.param({"cpu_efficiency": None}, False, id="unknown CPU time"),
    ],
)
def test_all_thresholds_must_be_exceeded(evaluate, changed, is_flagged):
    numbers = evaluate(LOW_CPU_EFFICIENCY, **{**AT_THRESHOLDS, **changed})

    assert (numbers is not None) is is_flagged
