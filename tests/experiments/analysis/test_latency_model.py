import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioportal.experiments.analysis.latency_model import (
    Load,
    NotIdentifiable,
    claim,
    fit,
    predict,
)

MIB = 2**20
# The loads of a published test, and its assumptions: 5 ms a read, and 12 MB/s for each of 8 slots.
ORIGINAL = Load("original", 63_143, 540.754 * MIB, 79.7109)
COALESCING = Load("read coalescing", 22_416, 805.87 * MIB, 28.0098)
LAZY_DOWNLOAD = Load("lazy download", 10, 1_169.41 * MIB, 18.01)
ASSUMED = 0.005, 12 * MIB


@pytest.mark.parametrize(
    ("load", "expected_s"), [(ORIGINAL, 360), (COALESCING, 179), (LAZY_DOWNLOAD, 97)]
)
def test_the_published_times_follow_with_megabytes_of_two_to_the_twentieth(load, expected_s):
    assert predict(load, *ASSUMED).total_s == pytest.approx(expected_s, abs=1)


@pytest.mark.parametrize(
    ("bandwidth", "original_s"), [(12e6, 363), (12.5e6, 361), (12.5 * MIB, 359)]
)
def test_other_readings_of_12_megabytes_miss_one_of_the_published_times(bandwidth, original_s):
    published = {ORIGINAL: 360, COALESCING: 179, LAZY_DOWNLOAD: 97}

    assert predict(ORIGINAL, 0.005, bandwidth).total_s == pytest.approx(original_s, abs=0.5)
    assert any(
        abs(predict(load, 0.005, bandwidth).total_s - expected_s) > 1
        for load, expected_s in published.items()
    )


def test_the_shares_show_which_term_matters():
    assert predict(ORIGINAL, *ASSUMED).latency_share == pytest.approx(0.875, abs=0.001)
    assert predict(LAZY_DOWNLOAD, *ASSUMED).latency_share == pytest.approx(0.0005, abs=0.0001)
    assert predict(Load("idle", 0, 0), *ASSUMED).latency_share is None


def test_a_claim_that_does_not_follow_is_refused():
    assert claim(predict(COALESCING, *ASSUMED), 40) == (
        "40 s cannot be derived from read coalescing: 22,416 operations take 112 s and 806 MiB "
        "take 67 s, 179 s in all."
    )
    assert claim(predict(COALESCING, *ASSUMED), 180).startswith("180 s agrees with read coalescing")


@given(
    latency_s=st.floats(1e-5, 1),
    bandwidth=st.floats(1e5, 1e10),
    operations=st.lists(st.integers(1, 10**6), min_size=3, max_size=8),
)
def test_exact_times_give_back_their_parameters(latency_s, bandwidth, operations):
    sizes = [10 ** (3 + index % 5) for index in range(len(operations))]  # bytes per operation
    true = latency_s, bandwidth
    loads = [
        Load("", number, number * size) for number, size in zip(operations, sizes, strict=True)
    ]
    timed = [Load("", each.operations, each.bytes, predict(each, *true).total_s) for each in loads]
    shares = [predict(load, *true).latency_share for load in loads]
    if max(shares) - min(shares) < 0.1:  # one term dominates all runs
        return

    fitted = fit(timed)

    assert fitted.latency_s.value == pytest.approx(latency_s, rel=1e-4)
    assert fitted.bandwidth_bytes_per_s.value == pytest.approx(bandwidth, rel=1e-4)


def test_the_intervals_cover_the_truth_in_19_of_20_cases():
    generator = np.random.default_rng(7)
    true = 0.003, 30e6
    covered = np.zeros(2)
    trials = 600
    for _ in range(trials):
        operations = generator.integers(1_000, 60_000, 6)
        sizes = generator.choice([4e3, 4e4, 4e5], 6, replace=True)
        sizes[:2] = 4e3, 4e5
        loads = [Load("", n, n * size) for n, size in zip(operations, sizes, strict=True)]
        timed = [
            Load("", each.operations, each.bytes, predict(each, *true).total_s * factor)
            for each, factor in zip(loads, generator.normal(1, 0.05, 6), strict=True)
        ]
        fitted = fit(timed)
        for index, (estimate, value) in enumerate(
            [
                (fitted.latency_s, true[0]),
                (fitted.bandwidth_bytes_per_s, true[1]),
            ]
        ):
            covered[index] += estimate.low <= value <= estimate.high

    assert covered / trials == pytest.approx([0.95, 0.95], abs=0.03)


def test_three_runs_give_wide_intervals():
    fitted = fit([ORIGINAL, COALESCING, LAZY_DOWNLOAD])

    # Two unknowns and three equations, solved by hand with the normal equations of relative times.
    loads = [ORIGINAL, COALESCING, LAZY_DOWNLOAD]
    terms = np.array(
        [[each.operations / each.measured_s, each.bytes / each.measured_s] for each in loads]
    )
    latency_s, slowness = np.linalg.lstsq(terms, np.ones(3), rcond=None)[0]
    assert fitted.latency_s.value == pytest.approx(latency_s)
    assert fitted.bandwidth_bytes_per_s.value == pytest.approx(1 / slowness)
    assert fitted.latency_s.low <= fitted.latency_s.value <= fitted.latency_s.high


@pytest.mark.parametrize(
    ("loads", "reason"),
    [
        ([ORIGINAL, COALESCING, Load("untimed", 1, 1)], "2 runs have a measured time"),
        ([ORIGINAL] * 5, "nearly the same bytes per operation"),
        ([Load("", n, 0, n / 100) for n in (1, 2, 3)], "nearly the same bytes per operation"),
        (
            [Load("", 10, 1e6, 3), Load("", 20, 2e8, 2), Load("", 100, 3e6, 40)],
            "The transfer term fits best as 0",
        ),
        (
            [Load("", 1_000, 1e6, 0.9), Load("", 10, 2e6, 2), Load("", 10, 3e6, 3)],
            "The latency term fits best as 0",
        ),
    ],
)
def test_a_fit_that_is_not_identifiable_is_refused(loads, reason):
    with pytest.raises(NotIdentifiable, match=reason):
        fit(loads)


@pytest.mark.parametrize("parameters", [(-1, 1e6), (0.1, 0), (float("nan"), 1), (0, float("nan"))])
def test_unusable_parameters_are_refused(parameters):
    with pytest.raises(ValueError, match="unusable"):
        predict(ORIGINAL, *parameters)
