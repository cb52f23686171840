"""Access methods: a metric by two labels."""

from itertools import product

import numpy as np
import polars as pl
import pytest
from scipy import stats

from ioportal.experiments.analysis import access_methods
from ioportal.experiments.analysis.runs import label_names, run_frame

MEANS = {  # CPU/wall of an access study
    ("dcap", "local"): 0.65,
    ("dcap", "remote"): 0.35,
    ("dcap++", "local"): 0.78,
    ("dcap++", "remote"): 0.55,
    ("xroot", "local"): 0.78,
    ("xroot", "remote"): 0.40,
}
DEVIATIONS = np.linspace(-0.06, 0.06, 7)


def run(name, protocol, locality, state="finished", **metrics):
    labels = {"protocol": protocol, "locality": locality}
    common = {"name": name, "arm": protocol, "state": state, "scale": None, "events": None}
    return {**common, "labels": labels, "metrics": metrics}


@pytest.fixture
def runs():
    rows = [
        run(f"{key} {number}", *key, cpu_s=4_000 * (mean + off), wall_s=4_000.0)
        for key, mean in MEANS.items()
        for number, off in enumerate(DEVIATIONS)
    ]
    return run_frame(
        [*rows, run("h", "dcap", "remote", "hung"), run("f", "xroot", "local", "failed")]
    )


def test_the_matrix_has_the_efficiencies_and_counts_hung_runs(runs):
    result = access_methods.matrix(runs, "efficiency_share", "protocol", "locality")

    assert (result.rows, result.columns) == (("dcap", "dcap++", "xroot"), ("local", "remote"))
    means = {key: cell.mean.value for key, cell in result.cells.items()}
    assert means == pytest.approx(MEANS)
    counts = {key: (cell.count, cell.failed, cell.hung) for key, cell in result.cells.items()}
    assert counts[("dcap", "remote")] == (7, 0, 1)
    assert counts[("xroot", "local")] == (7, 1, 0)


def test_contrasts_are_welchs_with_holms_correction(runs):
    result = access_methods.matrix(runs, "efficiency_share", "protocol", "locality")

    assert result.reference == ("dcap", "local")
    first = result.contrasts[0]
    test = stats.ttest_ind(0.35 + DEVIATIONS, 0.65 + DEVIATIONS, equal_var=False)
    low, high = test.confidence_interval(0.95)
    assert first.difference.value == pytest.approx(-0.30)
    assert (first.difference.low, first.difference.high) == pytest.approx((low, high))
    assert first.p == pytest.approx(5 * test.pvalue)  # the smallest of five


def test_any_two_labels_can_be_compared(runs):
    assert access_methods.default_labels(runs, label_names(runs)) == ["protocol", "locality"]

    result = access_methods.matrix(runs, "wall_s", "locality", "arm")

    assert set(result.cells) == set(product(["local", "remote"], ["dcap", "dcap++", "xroot"]))


def test_a_covariate_is_not_confounded_with_the_cells():
    rng = np.random.default_rng(7)
    rows = [
        run(
            f"{locality} {number}",
            "xroot",
            locality,
            efficiency_share=mean - 0.01 * buffers + rng.normal(0, 0.005),
            read_ahead_bytes=float(buffers),
            memory_bytes=mean + rng.normal(0, 0.001),  # differs between the cells alone
        )
        for locality, mean in (("local", 0.8), ("remote", 0.4))
        for number, buffers in enumerate(rng.integers(1, 9, 30))
    ]

    found = access_methods.covariates(run_frame(rows), "efficiency_share", "protocol", "locality")

    by_name = {each.name: each.correlation for each in found}
    assert by_name["read_ahead_bytes"].high < -0.8
    assert by_name["memory_bytes"].low < 0 < by_name["memory_bytes"].high


def test_stage_in_has_steps_that_direct_access_lacks():
    rows = [
        run("s1", "stage-in", "local", wall_s=900.0),
        run("s2", "stage-in", "local", wall_s=960.0),
        run("d1", "direct", "local", wall_s=820.0),
        run("d2", "direct", "local", "hung"),
    ]
    steps = pl.DataFrame(
        [("s1", "write", 40.0), ("s1", "read", 60.0), ("s2", "write", 44.0)],
        schema=["name", "step", "seconds"],
        orient="row",
    )

    staged, direct = access_methods.step_times(steps, run_frame(rows))

    assert (staged.seconds, staged.rest_s) == ({"write": 42.0, "read": 30.0}, 858.0)
    assert (direct.count, direct.seconds, direct.rest_s) == (1, {}, 820.0)
