"""The page of a PanDA job, and search for it."""

import pytest

from ioportal.core.formatting import UNKNOWN
from ioportal.jobs.models import WorkloadJob
from tests.web.reading import json_of, text_of, words_of


@pytest.fixture
def pilot(new_job, put_inside):
    """Batch job 3567126 of alice, which PanDA jobs 3558462700 and 3558462701 share."""
    pilot = new_job({"opens": 146_459}, batch_id="3567126")
    put_inside(pilot, 3_558_462_700, 3_558_462_701, error="pilot 1201: <b>killed</b>")
    WorkloadJob.objects.filter(panda_id=3_558_462_701).update(
        stage_in_s=14, stage_out_s=1, event_count=100, max_pss_bytes=2_048_000, transfer_type="fax"
    )
    return pilot


def test_the_page_shows_record_and_shared_figures_of_the_batch_job(as_alice, pilot):
    page = as_alice.get("/panda/anvil/3558462700/")
    words = words_of(page)

    assert f'href="/jobs/{pilot.pk}/">3567126</a>' in text_of(page)
    assert f"Run time 0:10:00 Wait 0:10:00 Set-up {UNKNOWN} Cores 16 CPU time 1:20:00" in words
    assert "CPU efficiency 50.0 %" in words
    assert "2 PanDA jobs share it; these figures are their total" in words
    assert "Opens ? 146,459" in words
    assert "pilot 1201: <b>killed</b>" in words


def test_json_has_names_of_panda_and_the_batch_job(as_alice, pilot):
    facts = json_of(as_alice.get("/panda/anvil/3558462700/?format=json"))

    assert (facts["pandaid"], facts["jeditaskid"], facts["jobstatus"]) == (
        3_558_462_700,
        10_995_522,
        "finished",
    )
    assert facts["panda_cpu_efficiency"] == 0.5
    assert facts["batch_job"]["opens"] == 146_459
    assert (facts["batch_job"]["shared_batch"], facts["batch_job"]["npandajobs"]) == (True, 2)


def test_times_of_the_pilot_are_shown_and_exported(as_alice, pilot):
    words = words_of(as_alice.get("/panda/anvil/3558462701/"))
    facts = json_of(as_alice.get("/panda/anvil/3558462701/?format=json"))

    assert "Copy latency in 14 s Copy latency out 1 s" in words
    assert "Events 100" in words
    assert "Peak memory 2.05 MB" in words
    assert "Transfer type fax" in words
    assert (facts["timestagein"], facts["timestageout"], facts["timegetjob"]) == (14, 1, None)
    assert (facts["nevents"], facts["maxpss_bytes"], facts["transfertype"]) == (
        100,
        2_048_000,
        "fax",
    )


def test_an_ambiguous_array_task_has_no_figures(as_alice, new_job, put_inside):
    tasks = [new_job({"opens": 1}, batch_id="77", array_index=str(number)) for number in (1, 2)]
    put_inside(tasks[0], 1)
    job = WorkloadJob.objects.get()
    job.jobs.add(tasks[1])
    WorkloadJob.objects.update(batch_job=None)

    words = words_of(as_alice.get("/panda/anvil/1/"))

    assert "Batch job 77[1] , 77[2]" in words
    assert "several tasks of an array" in words
    assert "Opens" not in words


def test_a_missing_batch_job_is_reported(as_staff, cluster):
    WorkloadJob.objects.create(
        cluster=cluster, panda_id=6, state="finished", reported_batch_id="99"
    )

    words = words_of(as_staff.get("/panda/anvil/6/"))

    assert "Batch job 99 not in accounting" in words
    assert "No batch job in accounting matches" in words


def test_the_batch_job_links_to_the_panda_job(as_alice, pilot):
    assert 'href="/panda/anvil/3558462701/"' in text_of(as_alice.get(f"/jobs/{pilot.pk}/"))


@pytest.mark.parametrize(
    ("words", "address"),
    [
        pytest.param("3558462701", "/panda/anvil/3558462701/", id="a PanDA job"),
        pytest.param("10995522", "/panda/?jeditaskid=10995522", id="a task"),
    ],
)
def test_search_finds_panda_ids(client, alice, charlie, pilot, words, address):
    client.force_login(alice)
    assert client.get("/search/", {"q": words})["Location"] == address

    client.force_login(charlie)
    assert "No results" in words_of(client.get("/search/", {"q": words}))


@pytest.mark.parametrize("words", ["3558462701", "10995522", "3567126"])
def test_the_job_list_finds_batch_jobs_by_panda_job(as_alice, pilot, new_job, words):
    new_job()

    rows = json_of(as_alice.get(f"/jobs/?q={words}&format=json"))["rows"]

    assert [row["job"] for row in rows] == ["3567126"]


def test_an_empty_list_explains_the_source_of_panda_jobs(as_staff):
    assert "manage.py ingest panda" in words_of(as_staff.get("/panda/"))
