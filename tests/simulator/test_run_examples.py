"""The examples of runs and transfers: read by the collectors, their truth is found again."""

from collections import Counter

import numpy as np
import polars as pl
import pytest

from collectors.format import Origin
from collectors.formats import BY_NAME, recognised
from collectors.source import Source
from ioportal.experiments.analysis import access_methods, bursts, stragglers
from ioportal.experiments.analysis.runs import run_frame
from ioportal.experiments.analysis.scaling import scaling
from simulator.experiments import access, ior, pairs
from simulator.experiments import scaling as scaling_example


@pytest.fixture
def table(tmp_path):
    """Write an example; return the rows of its files by arm, all read without a reject."""

    def read(write):
        parts = {}
        for file in write(tmp_path, 1).files:
            form = BY_NAME[file.format]
            assert recognised(Source.open(file.path).head) is form
            for parsed in form.parse(Source.open(file.path), Origin()):
                assert parsed.rejects.is_empty()
                parts.setdefault(file.arm, []).append(parsed.table)
        return {arm: pl.concat(tables) for arm, tables in parts.items()}

    return read


def facts(row, number):
    named = {kind: {e["name"]: e["value"] for e in row[kind]} for kind in ("labels", "metrics")}
    return {**row, **named, "name": row["run"] or str(number)}


def test_the_growth_of_the_copies_is_found(table):
    for arm, runs in table(scaling_example.write).items():
        values = [dict(metric.values() for metric in row)["duration_s"] for row in runs["metrics"]]

        result = scaling(runs["scale"].to_numpy(), np.array(values))

        _, _, exponent = scaling_example.TRUTH[arm]
        assert result.growth.low <= exponent <= result.growth.high
        if arm == scaling_example.OUTLIER[0]:
            assert result.outliers == (17,)


def test_the_efficiencies_of_the_protocols_are_found(table):
    rows = table(access.write)[""].rows(named=True)
    runs = run_frame(facts(row, number) for number, row in enumerate(rows))

    result = access_methods.matrix(runs, "efficiency_share", "protocol", "locality")

    for protocol, shares in access.TRUTH.items():
        for locality, share in zip(access.LOCALITIES, shares, strict=True):
            cell = result.cells[protocol, locality]
            assert cell.mean.value == pytest.approx(share, abs=0.03)
            assert cell.hung == access.HUNG.get((protocol, locality), 0)
            assert cell.failed == access.FAILED.get((protocol, locality), 0)


def test_every_repetition_of_ior_is_found(table):
    runs = pl.concat(table(ior.write).values()).rows(named=True)

    counts = Counter(
        (row["scale"], labels["file_access"], labels["operation"])
        for number, row in enumerate(runs)
        for labels in [facts(row, number)["labels"]]
    )
    assert set(counts.values()) == {ior.REPETITIONS}
    assert len(counts) == len(ior.NODES) * len(ior.TRUTH)


def test_stragglers_are_transient_and_do_not_predict(table):
    small, _ = table(pairs.write).values()
    truth = pairs.Truth()

    found = bursts.bursts(small)
    states = stragglers.states(found.transfers, "target")

    assert found.bursts.height == truth.bursts
    recovered = stragglers.persistence(states, "slow").ended[120.0]
    assert recovered.low < 1 - np.exp(-(120 - 12) / truth.hold_s) < recovered.high
    later = [skill for skill in stragglers.skills(states) if skill.lag_s >= 300]
    assert later
    assert all(skill.is_useless for skill in later)


def returned_within(limit_s, starts_s, slow):
    """Return the share of finished slow phases of targets (columns) that lasted up to a limit."""
    lasted_s = []
    for states in slow.T:
        changes = np.flatnonzero(np.diff(states.astype(int))) + 1
        begins = [at for at in changes if states[at]]
        ends = [at for at in changes if not states[at] and at > min(begins, default=states.size)]
        lasted_s += [
            starts_s[end] - starts_s[begin] for begin, end in zip(begins, ends, strict=False)
        ]
    assert len(lasted_s) > 100
    return np.mean(np.array(lasted_s) <= limit_s)


@pytest.mark.parametrize(
    ("name", "within_2_min"), [("bursts-of-32-MiB", 0.96), ("bursts-of-128-MiB", 1.0)]
)
def test_the_published_figures_of_titan_are_reproduced(tmp_path, name, within_2_min):
    """Xie et al. 2017: scores from 0.4 to 0.9, and the return of slow targets to normal.

    Calculated from the plain file: bursts are blocks of 126 rows.
    """
    pairs.write(tmp_path, 1)
    columns = np.genfromtxt(tmp_path / f"{name}.csv", delimiter=",", names=True, dtype=None)
    begin, target, size, seconds = (
        columns[column].reshape(-1, 126) for column in ("time", "target", "bytes", "seconds")
    )
    starts_s = begin.min(axis=1)
    rate = size / seconds
    lag = size / (begin + seconds - starts_s[:, None])
    by_target = np.take_along_axis(rate, np.argsort(target, axis=1), axis=1)
    slow = by_target < np.median(rate, axis=1, keepdims=True) / 1.5

    for score in (rate / rate.max(), lag / rate.max()):
        assert np.mean((score >= 0.4) & (score <= 0.9)) == pytest.approx(0.995, abs=0.005)
    assert slow.mean() > 0.01
    assert slow.mean(axis=1).max() < 0.2
    assert returned_within(120, starts_s, slow) == pytest.approx(within_2_min, abs=0.015)
    assert returned_within(600, starts_s, slow) == 1
    assert 0.5 < (starts_s[-1] - starts_s[0]) / 3600 < 1.7
