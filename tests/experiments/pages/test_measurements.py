"""Scaling, access methods, IOR and output performance: figures of the page and its exports."""

from pathlib import Path

import numpy as np
import pytest

from ioportal.experiments.models import Run
from simulator.experiments.pairs import Truth, series
from tests.web.reading import csv_of, words_of

FIXTURES = Path(__file__).parents[2] / "fixtures"
PAGE = "/experiments/test/"


@pytest.fixture
def load(as_alice, send):
    """Load fixtures as alice and return the words of the page."""

    def read(form, *names, **fields):
        for name in names:
            text = (FIXTURES / form / name).read_bytes()
            assert send(as_alice, text, name, "Test", **fields).status_code == 302
        return words_of(as_alice.get(PAGE))

    return read


@pytest.fixture
def rows(as_alice):
    """Return the rows of an export."""
    return lambda name, query="": csv_of(as_alice.get(f"{PAGE}exports/{name}/?format=csv{query}"))


def test_a_scaling_test_has_a_fitted_growth_and_names_its_outlier(load, rows):
    page = load("runs", "scaling.csv")

    assert "grows less than in proportion to the nodes" in page
    assert "scaling 18 is an outlier" in page
    [growth] = rows("scaling/growth")
    assert float(growth["low"]) < 0.6 < float(growth["high"])
    levels = rows("scaling/scaling")
    assert [(row["nodes"], row["runs"]) for row in levels] == [
        (f"{nodes}.0", "5") for nodes in (1, 5, 150, 400, 800)
    ]


def test_the_access_matrix_has_the_efficiencies_of_any_two_labels(as_alice, load, rows):
    page = load("runs", "access.csv")

    assert "Largest difference to dcap, local: dcap, remote" in page
    cells = {(row["row"], row["column"]): row for row in rows("access/access-matrix")}
    assert cells["dcap", "remote"]["hung"] == "1"
    means = {key: round(float(row["mean"]), 3) for key, row in cells.items()}
    assert means == {
        ("dcap", "local"): 0.65,
        ("dcap", "remote"): 0.35,
        ("dcap++", "local"): 0.78,
        ("dcap++", "remote"): 0.55,
        ("xroot", "local"): 0.78,
        ("xroot", "remote"): 0.40,
    }
    assert {row["column"] for row in rows("access/access-matrix", "&rows=locality")} == {
        *("dcap", "dcap++", "xroot")
    }
    for row in rows("access/access-distributions"):
        assert float(row["p5"]) <= means[row["row"], row["column"]] <= float(row["p95"])
    by_protocol = words_of(as_alice.get(f"{PAGE}?access_metric=wall_s&columns="))
    assert "Largest difference to dcap: " in by_protocol


def test_stage_in_is_compared_by_steps(load, rows):
    load("runs", "access.csv")
    load("runs", "stage_in.json")

    staged = next(row for row in rows("access/access-steps") if row["arm"] == "stage-in")

    assert [float(staged[f"{name}_s"]) for name in ("write", "checksum", "read", "rest")] == [
        *(42, 26, 63, 799)
    ]


def test_results_of_ior_are_compared_by_test(load, rows):
    page = load("ior", "version_3.1.txt")

    assert "Highest mean read bandwidth: 2.15 GB/s" in page
    write = rows("ior/ior-bandwidth")[0]
    assert (write["operation"], write["nodes"], write["runs"]) == ("write", "2.0", "2")
    assert float(write["mean_bytes_per_s"]) == 768 * 1024**2
    assert "Scaling" not in page
    assert page.count("Highest mean read bandwidth") == 1  # at the head alone
    assert "Metrics by arm" not in page  # writes and reads have no common median


def test_output_performance_finds_what_was_simulated(as_alice, send, rows):
    truth = Truth(pairs=30, bursts=60, persistent=0.2, onsets_per_s=0)
    text = series(np.random.default_rng(5), 32 * 1024**2, truth)

    send(as_alice, text, "series.csv", "Test", arm="32 MiB")

    page = words_of(as_alice.get(PAGE))
    assert "The past predicts up to" in page
    targets = rows("output/output-targets")
    slow = [row for row in targets if float(row["straggler_share"]) > 0.9]
    expected = np.count_nonzero(np.random.default_rng(5).random(30) < 0.2)
    assert len(slow) == expected > 1
    assert len(rows("output/output-bandwidth")) == 60
    skills = rows("output/output-prediction")
    assert {row["strategy"] for row in skills} >= {"avoid slow targets"}
    pairs = rows("output/output-pairs")
    assert len(pairs) == 30 * 30


def test_a_series_without_bursts_says_so(load):
    page = load("pair_series", "series.csv")

    assert "There are fewer than 3 bursts" in page
    assert Run.objects.get().pair_transfers.count() == 4
