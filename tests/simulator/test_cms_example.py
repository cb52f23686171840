"""The example of CMS storage timing: read by the collectors, its truth is found again."""

import csv

import pytest

from collectors.format import Origin
from collectors.formats import BY_NAME, recognised
from collectors.source import Source
from ioportal.experiments.analysis.latency_model import Load, fit
from ioportal.experiments.analysis.storage_timing import combined, comparison, timing
from ioportal.experiments.analysis.timing_observations import observations
from simulator.experiments import cms, examples

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("examples")
    examples.write(folder, seed=1)
    return folder


@pytest.fixture(scope="module")
def files(folder):
    """The rows of the index for this experiment."""
    with (folder / examples.INDEX).open() as index:
        return [row for row in csv.DictReader(index) if row["experiment"] == "CMS storage timing"]


@pytest.fixture(scope="module")
def arms(folder, files):
    """Timings of the runs by arm, merged from reports and logs."""
    runs = {}
    for row in files:
        if row["format"] == "prmon":
            continue
        parse = BY_NAME[row["format"]].parse
        [parsed] = parse(Source.open(folder / row["file"]), Origin())
        [values] = parsed.table.to_dicts()
        run = runs.setdefault((row["arm"], row["run"]), {"counters": [], "metrics": {}})
        run["counters"] += values["counters"]
        run["metrics"] |= {each["name"]: each["value"] for each in values["metrics"]}
        run["events"] = values["events"]
    arms = {}
    for (arm, name), run in runs.items():
        each = timing(name, run["counters"], run["metrics"], run["events"])
        arms.setdefault(arm, []).append(each)
    return arms


def test_every_file_is_read_without_rejects_and_recognised(folder, files):
    assert len(files) == len(cms.ARMS) * cms.RUNS * 3
    for row in files:
        form = BY_NAME[row["format"]]
        parts = list(form.parse(Source.open(folder / row["file"]), Origin()))
        assert sum(part.account.accepted for part in parts) > 0
        assert sum(part.account.rejected for part in parts) == 0
        assert recognised((folder / row["file"]).read_bytes()[:256]) is form


def test_the_files_depend_on_the_seed_alone(folder, files, tmp_path):
    examples.write(tmp_path / "again", seed=1)
    examples.write(tmp_path / "other", seed=2)
    report = files[0]["file"]

    assert (tmp_path / "again" / report).read_bytes() == (folder / report).read_bytes()
    assert (tmp_path / "other" / report).read_bytes() != (folder / report).read_bytes()


def test_the_fit_finds_latency_and_bandwidth_of_the_simulated_storage(arms):
    loads = [
        Load(run.name, run.read_operations, run.read_bytes, run.read_s)
        for runs in arms.values()
        for run in runs
    ]
    fitted = fit(loads)

    assert fitted.latency_s.value == pytest.approx(cms.LATENCY_S, rel=0.02)
    assert fitted.bandwidth_bytes_per_s.value == pytest.approx(cms.BANDWIDTH_BYTES_PER_S, rel=0.02)
    assert fitted.latency_s.low <= cms.LATENCY_S <= fitted.latency_s.high
    low, high = fitted.bandwidth_bytes_per_s.low, fitted.bandwidth_bytes_per_s.high
    assert low <= cms.BANDWIDTH_BYTES_PER_S <= high


def test_the_arms_differ_as_in_the_published_tests(arms):
    timings = [combined(arm, runs) for arm, runs in arms.items()]
    figures = {row.figure.name: row for row in comparison(timings)}

    assert [each.name for each in timings] == list(cms.ARMS)
    assert figures["read_operations"].values == (63_143, pytest.approx(26_500, rel=0.02), 10)
    assert figures["read_bytes"].ratios[1] > 1.2
    assert figures["cache_hit_share"].values[1] == pytest.approx(0.933, abs=0.005)
    assert figures["wall_s"].ratios[1] < 1
    assert figures["wasted_bytes"].values[2] > 0
    found = " ".join(observations(timings))
    assert "CPU times agree" in found
    assert "plausible for one slot" in found
    assert "number of events is not" not in found
