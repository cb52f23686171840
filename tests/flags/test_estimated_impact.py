"""Flags of a site without traces: impact is estimated from job_stats and service statistics."""

import pytest

from tests import loading, untraced


@pytest.fixture(scope="module")
def flags(module_site, module_logs):
    """Ingest all reads of an untraced server; return its flags by impact."""
    untraced.ingest(module_logs)
    return _impact_flags()


def test_a_storm_and_an_array_are_flagged_and_no_others(flags):
    assert flags.keys() == {
        ("impact", untraced.STORM),
        ("impact-of-many-jobs", "dave:task"),
    }
    for flag in flags.values():
        assert not flag.is_suppressed
        assert flag.numbers["impact_is_estimated"] == 1
        assert "(estimated; threshold 3 s)" in flag.advice
    storm = flags["impact", untraced.STORM]
    others = (1 + len(untraced.ARRAY)) * untraced.CALM_REQUESTS * 3  # requests in three minutes
    assert storm.numbers["impact_s"] == pytest.approx(
        others * (untraced.SLOW_US - untraced.CALM_US) / 1e6, rel=0.2
    )


def _impact_flags():
    return {key: flag for key, flag in loading.evaluate().items() if key[0].startswith("impact")}
