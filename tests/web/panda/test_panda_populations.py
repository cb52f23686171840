"""Populations of PanDA jobs: own figures, and figures of shared batch jobs."""

from urllib.parse import urlencode

import numpy as np
import pytest
from django.core.cache import cache

from ioportal.jobs.models import Population, WorkloadJob
from tests.logs import at
from tests.web.populations.test_populations import bars_of, found_at
from tests.web.reading import csv_of, json_of, text_of, words_of


@pytest.fixture
def pilots(new_job, put_inside):
    """Batch jobs: one shared by three PanDA jobs, one with a failed PanDA job, one not measured."""
    shared, own, unmeasured = (
        new_job({"opens": 1_368, "read_bytes": 10**9, "node_count": 3}),
        new_job({"opens": 2**53 + 1, "read_bytes": 0, "node_count": None, "quality": "poor"}),
        new_job(),
    )
    put_inside(shared, 1, 2, 3, stage_in_s=14, stage_out_s=0, max_pss_bytes=1_024)
    put_inside(own, 4, state="failed", cpu_s=None, ended_at=at("12:05:30"), created_at=at("12:06"))
    put_inside(unmeasured, 5, core_count=0, state="running", ended_at=None, task_id=7)
    return shared, own, unmeasured


@pytest.fixture
def lost(cluster):
    """A PanDA job whose batch job is not known."""
    WorkloadJob.objects.create(
        cluster=cluster, panda_id=6, state="finished", reported_batch_id="99"
    )


def spreads_of(answer):
    return {row["metric"]: row for row in json_of(answer)["rows"]}


def test_each_panda_job_has_the_full_value_of_its_batch_job(as_staff, pilots, lost):
    twin = json_of(as_staff.get("/populations/?unit=panda&format=json"))
    rows = {row["metric"]: row for row in twin["rows"]}
    [population] = twin["populations"]

    assert (twin["counted"], population["jobs"], population["batch_jobs"]) == ("PanDA jobs", 6, 3)
    assert population["states"] == {"finished": 4, "failed": 1, "running": 1}
    assert population["failed_share"] == 0.2
    assert population["quality"] == {"good": 3, "partial": 0, "poor": 1}
    opens = rows["opens"]
    assert (opens["value_of"], opens["n"], opens["unknown"]) == ("batch job", 4, 2)
    assert (opens["min"], opens["p50"], opens["max"]) == (1_368, 1_368, 2**53 + 1)
    assert rows["node_count"]["n"] == 3


def test_values_of_records_belong_to_each_panda_job(as_staff, pilots):
    rows = spreads_of(as_staff.get("/populations/?unit=panda&format=json"))
    values = {
        name: (row["n"], row["min"], row["max"])
        for name, row in rows.items()
        if row["value_of"] == "PanDA job"
    }

    assert values == {
        "panda_duration_s": (4, 30, 600),
        "panda_wait_s": (4, 600, 600),  # started before it was created, according to its record
        "panda_setup_s": (0, None, None),
        "panda_core_count": (4, 16, 16),
        "panda_cpu_s": (4, 4_800, 4_800),
        "panda_cpu_efficiency": (3, 0.5, 0.5),
        "panda_stage_in_s": (3, 14, 14),
        "panda_stage_out_s": (3, 0, 0),
    }


def test_the_page_groups_own_and_shared_values(as_staff, pilots):
    page = words_of(as_staff.get("/populations/?unit=panda"))

    assert "5 PanDA jobs, 3 finished, 1 failed, 1 running" in page
    assert "inside 3 batch jobs" in page
    assert "PanDA job Batch job (shared)" in page
    assert "each PanDA job has the full value of its batch job" in page
    assert "Servers count batch jobs." not in words_of(as_staff.get("/populations/"))


@pytest.mark.parametrize("scale", ["log", "linear"])
def test_a_bar_links_to_its_number_of_panda_jobs(as_staff, pilots, scale):
    page = as_staff.get(f"/populations/?unit=panda&produsername=Pilot+One&scale={scale}")

    for metric in ("panda_duration_s", "panda_wait_s", "panda_cpu_s", "read_bytes"):
        bars = bars_of(page, metric)
        assert sum(count for count, _ in bars) == 4, metric
        for count, jobs in bars:
            assert jobs.startswith("/panda/?produsername=Pilot+One")
            if count:
                assert found_at(as_staff, jobs) == count, jobs


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("pandaid=1,4|nonsense", [4, 1]),
        ("jeditaskid=7", [5]),
        ("computingsite=ORNL_Titan_MCORE&jobstatus=failed", [4]),
        ("computingsite=CERN", []),
        ("produsername=Pilot+One&end=2017-07-05T12:05:00Z", []),
        ("start=2017-07-05T12:10:00Z", [5, 3, 2, 1]),
        ("batchid={shared}", [3, 2, 1]),
        ("opens_from=1369", [4]),
        ("panda_duration_s_below=600", [4]),
        ("panda_stage_in_s_from=14", [3, 2, 1]),
        ("panda_stage_in_s_below=14", []),
        ("pandaid=" + "9" * 30, []),
    ],
)
def test_filters_have_names_of_the_panda_monitor(as_staff, pilots, query, ids):
    rows = csv_of(as_staff.get(f"/panda/?{query.format(shared=pilots[0].batch_id)}&format=csv"))

    assert [int(row["pandaid"]) for row in rows] == ids


def test_an_invalid_filter_is_reported(as_staff, pilots):
    page = as_staff.get("/panda/?opens_from=many")

    assert "Invalid filter" in words_of(page)
    assert as_staff.get("/panda/?opens_from=many&format=csv").status_code == 400
    assert as_staff.get("/panda/?start=2017-07-06&end=2017-07-05&format=csv").status_code == 400


def test_a_change_of_unit_preserves_common_filters(as_staff, pilots):
    page = text_of(as_staff.get("/populations/?user=alice&cluster=anvil&opens_from=5&scale=linear"))

    assert (
        'href="/populations/?unit=panda&amp;cluster=anvil&amp;opens_from=5&amp;scale=linear"'
        in page
    )
    assert "Ignored." in words_of(as_staff.get("/populations/?unit=nodes"))


def test_a_saved_population_preserves_the_unit(as_staff, sam, pilots):
    as_staff.post(
        "/populations/?unit=panda", {"name": "Failed", "query": "/panda/?jobstatus=failed"}
    )
    named = Population.objects.get()
    page = text_of(as_staff.get("/populations/failed/?scale=linear"))

    assert named.query == "unit=panda&jobstatus=failed"
    twins = ("/populations/failed/?scale=linear", "/populations/histograms/opens/?saved=failed")
    for twin in twins:
        assert f'href="{twin}' in page
        [population] = json_of(as_staff.get(f"{twin}&format=json"))["populations"]
        assert (population["title"], population["description"]) == (
            "Failed",
            "PanDA jobs, state: failed",
        )
    [row, *_] = csv_of(as_staff.get("/populations/other-metrics/?saved=failed&format=csv"))
    assert (row["population"], row["filters"]) == ("Failed", "PanDA jobs, state: failed")
    assert as_staff.get("/populations/other-metrics/?saved=nothing").status_code == 404


def test_only_populations_of_one_unit_are_compared(as_staff, pilots):
    query = urlencode({"unit": "panda", "compare": "/panda/?jobstatus=failed"})
    rows = csv_of(as_staff.get(f"/populations/?{query}&format=csv"))
    mixed = as_staff.get("/populations/?unit=panda&compare=user%3Dalice&format=csv")

    assert {row["population"] for row in rows} == {"All PanDA jobs", "PanDA jobs, state: failed"}
    assert "has jobs" in str(mixed.json()["errors"]["compare"])


def test_panda_jobs_are_visible_with_their_batch_jobs(client, charlie, alice, pilots, lost):
    for person, jobs in ((alice, 5), (charlie, 0)):
        client.force_login(person)

        twin = json_of(client.get("/populations/?unit=panda&format=json"))
        assert twin["populations"][0]["jobs"] == jobs
        assert found_at(client, "/panda/?") == jobs
        assert client.get("/panda/anvil/1/").status_code == (200 if jobs else 404)
        assert client.get("/panda/anvil/6/").status_code == 404


@pytest.mark.parametrize(
    ("batch_jobs", "users", "visible"), [(9, 3, None), (10, 2, None), (10, 3, 30)]
)
def test_few_batch_jobs_or_users_are_hidden(
    as_alice, new_job, put_inside, batch_jobs, users, visible
):
    for number in range(batch_jobs):
        pilot = new_job({"opens": 777_777}, owner="bob", project="BIO3")
        put_inside(pilot, *range(3 * number, 3 * number + 3), user=f"Pilot {number % users}")
    query = "unit=panda&compare=others&produsername=Nobody&jobstatus=finished"

    twin = json_of(as_alice.get(f"/populations/?{query}&format=json"))
    others = twin["populations"][1]
    by_metric = {row["metric"]: row for row in twin["rows"] if row["population"] == others["title"]}
    bars = json_of(as_alice.get(f"/populations/histograms/opens/?{query}&format=json"))["rows"]
    page = text_of(as_alice.get(f"/populations/?{query.replace('&produsername=Nobody', '')}"))

    assert (others["jobs"], others["filters"], others["states"]) == (
        visible,
        "jobstatus=finished",
        {},
    )
    assert by_metric["panda_duration_s"]["p50"] == (600 if visible else None)
    assert by_metric["opens"]["n"] is None
    assert bars == []
    assert "777,777" not in page


def test_a_changed_record_changes_the_figures(as_staff, pilots, django_assert_num_queries):
    as_staff.get("/populations/?unit=panda")
    with django_assert_num_queries(9):  # as of batch jobs, and when a PanDA job last changed
        as_staff.get("/populations/?unit=panda")
    WorkloadJob.objects.filter(panda_id=1).update(cpu_s=9_999, changed_at=at("12:00"))
    WorkloadJob.objects.filter(panda_id=2).update(changed_at=at("13:00"))
    WorkloadJob.objects.exclude(panda_id__in=[1, 2]).update(changed_at=at("12:00"))

    rows = spreads_of(as_staff.get("/populations/?unit=panda&format=json"))
    assert rows["panda_cpu_s"]["max"] == 9_999


def test_the_number_of_queries_does_not_grow_with_the_figures(
    as_staff, pilots, new_job, put_inside, django_assert_num_queries
):
    for number in range(20):
        put_inside(new_job({"opens": number}), *range(100 * number + 100, 100 * number + 110))
    cache.clear()
    with django_assert_num_queries(18):
        as_staff.get("/populations/?unit=panda")
    # Session, user, clusters, simulated, count, pending, rows, flags.
    with django_assert_num_queries(8):
        as_staff.get("/panda/?computingsite=ORNL_Titan_MCORE")


def test_values_of_batch_jobs_are_repeated_exactly(as_staff, new_job, put_inside):
    sizes, values = [1, 7, 350], [10, 2, 5]
    for number, (size, opens) in enumerate(zip(sizes, values, strict=True)):
        put_inside(new_job({"opens": opens}), *range(1_000 * number, 1_000 * number + size))
    opens = spreads_of(as_staff.get("/populations/?unit=panda&format=json"))["opens"]

    repeated = np.repeat(values, sizes)
    assert opens["mean"] == pytest.approx(repeated.mean())
    assert opens["p99"] == pytest.approx(np.percentile(repeated, 99))
