"""The what-if page: loads of runs, jobs, populations and plain numbers."""

import pytest

from ioportal.experiments.experiments import RunRecord, named_experiment, record_runs
from tests.web.reading import csv_of, json_of, words_of

MIB = 2**20
RAL = (  # name, reads, MiB, time in reads
    ("original", 63_143, 540.754, 79.7109),
    ("read coalescing", 22_416, 805.87, 28.0098),
    ("lazy download", 10, 1_169.41, 18.01),
)


@pytest.fixture
def ral(alice):
    """The runs of an experiment of alice."""
    records = [
        RunRecord(
            name,
            metrics={"read_operations": reads, "read_bytes": mib * MIB, "read_s": seconds},
        )
        for name, reads, mib, seconds in RAL
    ]
    return record_runs(named_experiment("RAL", alice), records)


def test_the_published_times_of_three_runs(as_alice, ral):
    keys = "&".join(f"run={run.pk}" for run in ral)
    address = f"/model/?{keys}&latency_ms=5&bandwidth_mib_s=12&claimed_s=40"
    rows = csv_of(as_alice.get(f"{address}&format=csv"))
    words = words_of(as_alice.get(address))

    assert [row["load"] for row in rows] == [name for name, *_ in RAL]
    assert [float(row["predicted_s"]) for row in rows] == pytest.approx([360, 179, 97], abs=1)
    assert "40 s cannot be derived from read coalescing: 22,416 operations take 112 s" in words


def test_the_runs_of_an_experiment_are_fitted(as_alice, ral):
    facts = json_of(as_alice.get("/model/?experiment=ral&format=json"))
    words = words_of(as_alice.get("/model/?experiment=ral"))

    fitted = facts["fit"]
    assert fitted["latency_s"]["low"] <= fitted["latency_s"]["value"] == facts["latency_s"]
    assert "Fitted to 3 runs: latency" in words
    assert "The predictions below use the fitted values." in words
    other = words_of(as_alice.get("/model/?experiment=ral&latency_ms=9"))
    assert "Use the fitted values" in other


def test_plain_numbers_need_no_data(as_alice):
    [row] = csv_of(
        as_alice.get("/model/?operations=1000&mib=100&latency_ms=2&bandwidth_mib_s=50&format=csv")
    )

    assert (float(row["latency_term_s"]), float(row["transfer_term_s"])) == (2, 2)
    assert "An example." in words_of(as_alice.get("/model/"))


def test_jobs_and_populations_count_per_node(as_alice, new_job):
    figures = {
        "node_count": 4,
        "metadata_operations": 4_000,
        "read_bytes": 400 * MIB,
        "mean_read_bytes": 1 * MIB,
        "write_bytes": 0,
        "mean_write_bytes": None,
    }
    job = new_job(figures)
    new_job({**figures, "metadata_operations": 12_000})
    new_job({"node_count": 1, "metadata_operations": 5})  # its bytes are unknown
    parameters = "latency_ms=2&bandwidth_mib_s=50&format=csv"
    [one] = csv_of(as_alice.get(f"/model/?job={job.pk}&{parameters}"))
    [population] = csv_of(as_alice.get(f"/model/?user=alice&last=all&{parameters}"))

    assert one["load"] == f"job {job.batch_id}"
    assert float(one["operations"]) == 1_000 + 100
    assert float(one["predicted_s"]) == pytest.approx(1_100 * 0.002 + 100 / 50)
    assert float(population["operations"]) == (1_000 + 3_000) / 2 + 100
    assert float(population["bytes"]) == 100 * MIB
    assert f'href="/model/?job={job.pk}"' in as_alice.get(f"/jobs/{job.pk}/").content.decode()
    population_page = as_alice.get("/populations/?user=alice&last=all").content.decode()
    assert 'href="/model/?user=alice&amp;last=all"' in population_page


def test_runs_and_experiments_of_others_are_not_visible(client, bob, ral):
    client.force_login(bob)
    words = words_of(client.get(f"/model/?run={ral[0].pk}&experiment=ral"))

    assert f"Run '{ral[0].pk}' is not visible or does not exist." in words
    assert "Experiment 'ral' has no visible runs." in words
    assert "original" not in words


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("latency_ms=fast", "latency_ms 'fast' is not a usable number. Ignored."),
        ("latency_ms=-1", "latency_ms '-1' is not a usable number. Ignored."),
        ("bandwidth_mib_s=0", "bandwidth_mib_s '0' is not a usable number. Ignored."),
        ("operations=nan", "operations 'nan' is not a usable number. Ignored."),
        ("mib=1e400", "mib '1e400' is not a usable number. Ignored."),
        ("run=%00", "is not visible or does not exist."),
        ("run=99999999999999999999", "is not visible or does not exist."),
        ("job=1&job=x", "is not visible or does not exist."),
        ("nodes_min=x", "nodes_min:"),
    ],
)
def test_invalid_parameters_are_reported_and_ignored(as_alice, query, message):
    response = as_alice.get(f"/model/?{query}")

    assert response.status_code == 200
    assert message in words_of(response)
