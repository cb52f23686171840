import pytest

from ioportal.core import formatting
from ioportal.core.units import Unit


@pytest.mark.parametrize(
    ("value", "unit", "human", "exact"),
    [
        (None, Unit.BYTES, "\u2013", "unknown"),
        (0, Unit.BYTES, "0 B", "0 bytes = 0 B"),
        (999, Unit.BYTES, "999 B", "999 bytes = 999 B"),
        (241_060_000_000, Unit.BYTES, "241 GB", "241,060,000,000 bytes = 225 GiB"),
        (1_073_741_824, Unit.BYTES, "1.07 GB", "1,073,741,824 bytes = 1.00 GiB"),
        (5e7, Unit.BYTES_PER_SECOND, "50.0 MB/s", "50,000,000 bytes/s"),
        (1_260_185, Unit.COUNT, "1,260,185", "1,260,185 operations"),
        (69_291.96, Unit.RPCS_PER_SECOND, "69,292", "69,291.96 RPCs/s"),
        (0.00037, Unit.RATIO, "0.0004", "0.00037"),
        (5.2e-7, Unit.RATIO, "0.0000005", "0.000001"),
        (4.2, Unit.RATIO, "4.20", "4.2"),
        (0.315, Unit.SHARE, "31.5 %", "0.315 share"),
        (12.5, Unit.SECONDS, "12.5 s", "12.5 s"),
        (59.7, Unit.SECONDS, "59.7 s", "59.7 s"),
        (6281.4, Unit.SECONDS, "1:44:41", "6,281.4 s"),
        (90_061, Unit.SECONDS, "1 d 1:01:01", "90,061 s"),
        (4.2, Unit.MICROSECONDS, "4.20 µs", "4.2 µs"),
        (42, Unit.MICROSECONDS, "42 µs", "42 µs"),
        (4983, Unit.MICROSECONDS, "4.98 ms", "4,983 µs"),
        (1_399_683, Unit.MICROSECONDS, "1.40 s", "1,399,683 µs"),
        (300, Unit.NODES, "300", "300 nodes"),
    ],
)
def test_a_value_is_readable_and_exact(value, unit, human, exact):
    assert formatting.human(value, unit) == human
    assert formatting.exact(value, unit) == exact


@pytest.mark.parametrize(
    ("share", "one_decimal", "whole"),
    [
        (0, "0.0", "0"),
        (0.00049, "<0.1", "<1"),
        (0.0005, "0.1", "<1"),
        (0.0657, "6.6", "7"),
        (0.0655, "6.6", "7"),
        (0.9949, "99.5", "99"),
        (0.9996, ">99.9", ">99"),
        (1, "100.0", "100"),
        (12.5, "1,250.0", "1,250"),
    ],
)
def test_percentages_are_rounded_but_never_to_none_or_all(share, one_decimal, whole):
    assert formatting.percent(share) == one_decimal
    assert formatting.percent(share, 0) == whole


@pytest.mark.parametrize("unit", Unit)
def test_every_unit_has_a_short_form(unit):
    assert formatting.SHORT_UNITS[unit]
