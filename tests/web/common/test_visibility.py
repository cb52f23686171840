from tests.logs import rpc
from tests.web.reading import json_of, words_of


def test_the_list_has_visible_jobs_only(client, new_job, bob):
    mine = new_job(owner="bob", project="BIO3")
    shared = new_job(owner="alice", project="PHY12")
    new_job(owner="charlie", project="CHM7")
    client.force_login(bob)

    listed = json_of(client.get("/jobs/?format=json"))["rows"]

    assert {row["id"] for row in listed} == {mine.pk, shared.pk}


def test_facets_count_visible_jobs_only(client, new_job, charlie):
    new_job(owner="alice", queue="secret")
    client.force_login(charlie)

    assert "secret" not in client.get("/jobs/").content.decode()


def test_a_batch_id_redirects_to_its_latest_job(as_alice, new_job):
    new_job(batch_id="7", submitted_at="2016-01-01T00:00Z")
    latest = new_job(batch_id="7")

    answer = as_alice.get("/jobs/anvil/7/")

    assert answer["Location"] == f"/jobs/{latest.pk}/"


def test_a_task_of_an_array_is_found_by_its_index(as_alice, new_job):
    third = new_job(batch_id="7", array_index="3")
    new_job(batch_id="7", array_index="4")

    answer = as_alice.get("/jobs/anvil/7/?array_index=3")

    assert answer["Location"] == f"/jobs/{third.pk}/"


def test_a_hidden_batch_id_is_not_found(client, new_job, charlie):
    new_job(batch_id="7")
    client.force_login(charlie)

    answer = client.get("/jobs/anvil/7/")

    assert answer.status_code == 404
    assert "Page not found" in words_of(answer)


def test_staff_register_the_site_on_its_pages(as_staff, site, logs, ingest):
    ingest("rpctrace", logs("mds1.log", rpc("12:00", "7@tcp")), server="mds1")

    assert "7@tcp" in as_staff.get("/admin/site/nid/?registered=no").content.decode()
    assert as_staff.get("/admin/site/").status_code == 200
