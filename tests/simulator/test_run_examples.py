"""The examples of runs and transfers: read by the collectors, their truth is found again."""

from collections import Counter

import numpy as np
import polars as pl
import pytest

from collectors.format import Origin
from collectors.formats import BY_NAME, recognised
from collectors.source import Source
from ioportal.analysis.experiments import bursts, efficiency, stragglers
from ioportal.analysis.experiments.run_frame import run_frame
from ioportal.analysis.experiments.scaling import scaling
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

    result = efficiency.matrix(runs, "efficiency_share", "protocol", "locality")

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

    found = bursts.bursts(small)
    states = stragglers.states(found.transfers, "target")

    assert found.bursts.height == pairs.TRUTH.bursts
    recovered = stragglers.persistence(states, "slow").ended[120.0]
    assert recovered.low < 1 - np.exp(-(120 - 12) / pairs.TRUTH.hold_s) < recovered.high
    later = [skill for skill in stragglers.skills(states) if skill.lag_s >= 300]
    assert later
    assert all(skill.is_useless for skill in later)
