"""Processors that idle beside heavy input or output."""

import pytest

from ioportal.analysis.rules import LOW_CPU_EFFICIENCY

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
    ("changed", "is_found"),
    [
        pytest.param({}, True, id="at every threshold"),
        pytest.param({"has_ended": False}, False, id="it runs still"),
        pytest.param({"cpu_efficiency": 0.081}, False, id="more efficient"),
        pytest.param({"core_count": 10}, False, id="fewer hours"),
        pytest.param({"read_bytes": 2e11}, False, id="little input and output"),
        pytest.param({"read_bytes": None, "write_bytes": None}, False, id="none is known"),
        pytest.param(
            {"read_bytes": None, "metadata_operations": 250_000}, True, id="metadata instead"
        ),
        pytest.param({"cpu_efficiency": None}, False, id="accounting does not say"),
    ],
)
def test_it_takes_all_thresholds(found, changed, is_found):
    numbers = found(LOW_CPU_EFFICIENCY, **{**AT_THRESHOLDS, **changed})

    assert (numbers is not None) is is_found
