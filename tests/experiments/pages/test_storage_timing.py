"""Storage timing in the browser: the published figures, from files in the original formats."""

from pathlib import Path

import pytest

from ioportal.experiments.models import Experiment
from tests.web.reading import csv_of, json_of, words_of

FIXTURES = Path(__file__).parents[2] / "fixtures"
RAL = {
    "ral_original": "original",
    "ral_coalescing": "read coalescing",
    "ral_lazy_download": "lazy download",
}
FNAL = {"fnal_original": "original", "fnal_improved": "improved"}
CERN = {"cern_original": "original", "cern_improved": "improved"}


@pytest.fixture
def load(as_alice, send):
    """Load CMSSW logs into an experiment; its page as words, and the client."""

    def run(arms, experiment):
        for name, arm in arms.items():
            text = (FIXTURES / "cmssw_log" / f"{name}.log").read_bytes()
            send(as_alice, text, f"{name}.log", experiment, arm=arm)
        return f"/experiments/{Experiment.objects.get(name=experiment).slug}/"

    return run


def test_the_figures_of_ral_stand_next_to_each_other(as_alice, load):
    page = load(RAL, "RAL")
    words = words_of(as_alice.get(page))

    assert "Reads 63,143 22,416 0.36\u00d7 10" in words
    assert "Read 540.754 MiB 805.870 MiB 1.49\u00d7 1,169.410 MiB 2.16\u00d7" in words
    assert "Wall time 725.73 s 674.95 s 0.93\u00d7 664.70 s 0.92\u00d7" in words
    assert "Share of run in reads 11.0 % 4.1 % 0.38\u00d7 2.7 % 0.25\u00d7" in words
    assert "Doubt: lazy download read at 65 MiB/s (68 MB/s), above the 50 MB/s" in words
    assert "CPU times agree (631.1 s to 636.1 s)" in words
    assert "above the 50 MB/s" not in words_of(as_alice.get(f"{page}?plausible=70"))


def test_the_block_of_fnal_supports_no_conclusion(as_alice, load):
    words = words_of(as_alice.get(load(FNAL, "FNAL")))

    assert "Storage timing : Doubt: original and improved have identical counters" in words
    assert "no conclusion on storage is possible" in words


def test_the_figures_are_exported_with_their_ratios(as_alice, load):
    page = load(CERN, "CERN")
    rows = csv_of(as_alice.get(f"{page}exports/storage-timing/figures/?format=csv"))
    reads = [row for row in rows if row["figure"] == "read_operations"]
    counters = json_of(as_alice.get(f"{page}exports/storage-timing/counters/?format=json"))["rows"]
    [cache] = [
        row for row in counters if (row["counter"], row["arm"]) == ("read-via-cache", "improved")
    ]
    shares = csv_of(as_alice.get(f"{page}exports/storage-timing/wall-time/?format=csv"))

    assert [(row["arm"], float(row["value"])) for row in reads] == [
        ("original", 63_143),
        ("improved", 22_416),
    ]
    assert float(reads[1]["ratio"]) == pytest.approx(22_416 / 63_143)
    assert (cache["operations"], cache["successes"]) == (59_856, 55_830)
    assert float(shares[0]["reads"]) == pytest.approx(200.315 / 838.683)


def test_report_log_and_samples_make_one_run(as_alice, send):
    for form, name in (
        ("cmssw_fjr", "counter_values.xml"),
        ("prmon", "prmon.txt"),
        ("prmon", "prmon.json"),
    ):
        send(as_alice, (FIXTURES / form / name).read_bytes(), name, "One run", run="first")
    times = "real\t12m5.73s\nuser\t10m23.57s\nsys\t0m12.55s\n"
    send(as_alice, times, "cmsRun.log", "One run", run="first", format="cmssw_log")
    [run] = Experiment.objects.get(name="One run").runs.all()
    words = words_of(as_alice.get("/experiments/one-run/"))

    assert (run.events, run.metrics["wall_s"], run.metrics["process_wall_s"]) == (10_000, 725.73, 7)
    assert run.process_samples.count() == 5
    assert "first used up to 4.19 MB of swap." in words
    assert "first: counters fell (stime_s)" in words
    totals = csv_of(as_alice.get("/experiments/one-run/exports/process-samples/totals/?format=csv"))
    assert float(totals[0]["read_bytes"]) == 5 * 27_222_400
