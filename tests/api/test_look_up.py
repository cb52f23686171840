"""Look-up of many jobs, as PanDA's monitor asks."""

import json

import pytest
from django.contrib.auth.models import Group, User
from django.utils import timezone

from ioportal.findings.models import JobEvidence
from ioportal.jobs.models import WorkloadJob
from tests.logs import at
from tests.web import rows

QUERY = "/api/v1/jobs/query/"
FIGURES = {
    "duration_s": 3_600,
    "read_bytes": 7_200_000,
    "write_bytes": None,
    "opens": 30,
    "closes": 20,
    "metadata_operations": 100,
    "count_open": 30,
    "count_close": 20,
    "count_getattr": 50,
    "peak_metadata_rate": 5.5,
    "peak_resolution_s": 60,
    "largest_target_share": 0.25,
}


@pytest.fixture
def pilot(new_job, put_inside):
    """Batch job 3567126 of alice with PanDA jobs 11 and 12."""
    pilot = new_job(FIGURES, batch_id="3567126")
    put_inside(pilot, 11, 12, reported_batch_id="3567126.titan", modified_at=at("12:20"))
    return pilot


@pytest.fixture
def look_up(client, secret_of):
    """Look up jobs with the token of a user; return the decoded response."""

    def send(query, user="sam", body=None, kind="application/json"):
        headers = {"Authorization": f"Token {secret_of(user, is_staff=user == 'sam')}"}
        if body is None:
            answer = client.get(f"{QUERY}?json&{query}", headers=headers)
        else:
            answer = client.post(QUERY, body, content_type=kind, headers=headers)
        return answer

    return send


def test_users_see_rounded_figures_of_others(look_up, pilot):
    JobEvidence.objects.create(job=pilot, seen_until=at("13:00"), impact_s=90.5, impact_share=0.567)

    of_staff, of_owner = (look_up("pandaid=11", user).json()["11"] for user in ("sam", pilot.owner))

    assert (of_staff["impact_s"], of_staff["mds_share_pct"]) == (90.5, pytest.approx(56.7))
    assert (of_owner["impact_s"], of_owner["mds_share_pct"]) == (91, pytest.approx(57))


def test_a_record_has_panda_names_and_the_figures_of_the_batch_job(look_up, pilot):
    rows.flag_job(pilot)
    rows.flag_job(pilot, rule="stat-storm", suppression_reasons=["too little coverage"])
    JobEvidence.objects.create(
        job=pilot, seen_until=at("13:00"), impact_s=90.5, impact_share=0.5, impact_is_estimated=True
    )

    answer = look_up("pandaid=11,99").json()

    assert list(answer) == ["99", "11"]
    assert answer["99"] is None
    record = answer["11"]
    expected = {
        "pandaid": 11,
        "jeditaskid": 10_995_522,
        "jobstatus": "finished",
        "batchid": "3567126.titan",
        "batch_job": "3567126",
        "computingsite": "ORNL_Titan_MCORE",
        "starttime": "2017-07-05T12:05:00",
        "modificationtime": "2017-07-05T12:20:00",
        "shared_batch": True,
        "npandajobs": 2,
        "totrbytes": 7_200,
        "raterbytes": 2,
        "totwbytes": None,
        "read_bytes": 7_200_000,
        "bytes_unit": "kB",
        "open_total": 30,
        "close_total": 20,
        "mdops_total": 100,
        "mdops_rate_max": 5.5,
        "mdops_rate_max_interval_s": 60,
        "mdt_share_max_pct": 25,
        "mds_share_pct": 50,
        "impact_s": 90.5,
        "impact_is_estimated": True,
        "op_mix": {"open": 0.3, "close": 0.2, "getattr": 0.5},
        "flags": ["metadata-operations"],
        "quality": "good",
        "url": f"http://localhost:8000/jobs/{pilot.pk}/",
    }
    assert {name: record[name] for name in expected} == expected


def test_batch_ids_look_up_batch_jobs(look_up, pilot, new_job):
    older = new_job({"opens": 1}, batch_id="3567126", submitted_at=at("01:00"))
    task = new_job({"opens": 2}, batch_id="77", array_index="4")

    answer = look_up("batchid=3567126,77,3567126.titan|404&fields=batchid,open_total").json()

    assert older.submitted_at < pilot.submitted_at
    assert answer == {
        "404": None,
        "3567126.titan": {"batchid": "3567126", "open_total": 30},
        "3567126": {"batchid": "3567126", "open_total": 30},
        task.display_id: {"batchid": "77[4]", "open_total": 2},
    }


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("jeditaskid=10995522|5&pandaid=12", {"12"}),
        ("computingsite=ORNL*&days=9999", {"11", "12"}),
        ("computingsite=ORNL&days=9999", set()),
        ("computingsite=*&produsername=Pilot One&days=9999", {"11", "12"}),
        ("batchid=3567126&jobstatus=finished,failed", {"11", "12"}),
        ("jobstatus=fail*&days=9999", set()),
        ("date_from=2017-07-05&date_to=2017-07-05T12:20:00", set()),
        ("date_from=2017-07-05T12:20:00&date_to=2017-07-06", {"11", "12"}),
        ("hours=1", {"13"}),
        ("", {"13"}),
        ("days=9999&limit=1", {"13"}),
        ("computingsite=O.NL_Titan_MCORE*&days=9999", set()),
    ],
)
def test_selections(look_up, pilot, put_inside, query, found):
    put_inside(pilot, 13, site="other", user="x", state="running", modified_at=timezone.now())

    assert set(look_up(query).json()) == found


def test_the_list_form_has_counts_unknown_ids_and_warnings(look_up, pilot):
    answer = look_up("form=list&pandaid=11,12,99&jeditaskid=10995522&limit=2").json()
    assert [job["pandaid"] for job in answer["jobs"]] == [12, 11]
    assert (answer["nrecords"], answer["errors"], answer["warnings"]) == (2, [], [])
    assert answer["unknown"] == {"pandaid": ["99"], "jeditaskid": []}

    cut = look_up("form=list&pandaid=11,12,99&limit=1")
    assert cut.json()["warnings"] == ["There are more than 1 records: only these are sent."]
    assert (cut.json()["unknown"], cut["X-Truncated"]) == ({}, "limit=1")


def test_users_look_up_only_jobs_that_they_may_see(look_up, pilot, new_job, put_inside):
    put_inside(new_job(FIGURES, owner="bob", project="ENG103"), 21)

    assert look_up("pandaid=11,21", user="alice").json().keys() == {"11", "21"}
    assert look_up("pandaid=11,21", user="alice").json()["21"] is None
    assert look_up("pandaid=11,21", user="bob").json()["11"] is None
    assert look_up("batchid=3567126", user="bob").json() == {"3567126": None}


def test_many_ids_are_posted(look_up, pilot):
    ids = list(range(20_000))
    posted = look_up("", body=json.dumps({"pandaid": ids, "fields": ["pandaid"]})).json()
    assert len(posted) == 20_000
    assert posted["11"] == {"pandaid": 11}
    assert posted["10"] is None

    form = look_up("", body="pandaid=11,12", kind="application/x-www-form-urlencoded").json()
    assert form.keys() == {"11", "12"}

    refused = look_up(f"pandaid={','.join(map(str, range(2_001)))}")
    assert (refused.status_code, refused.json()["code"]) == (400, "too_many_ids")
    assert "POST" in refused.json()["remedy"]


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("usr=alice", "'usr' is invalid. It is not known"),
        ("fields=pandaid,opens", "'opens' is not one of pandaid"),
        ("hours=0", "from 1 to"),
        ("hours=1e9", "from 1 to"),
        ("date_from=2017-13-01", "like 2017-08-18"),
        ("date_from=2017-07-06&date_to=2017-07-05", "not later"),
        ("form=xml", "dict, list"),
        ("limit=-1", "from 1 to"),
        ("pandaid=", "no ids"),
        ("jobstatus=" + "x*" * 5, "none more than 4"),
        ("jobstatus=" + "x" * 200 + "*", "at most 200 characters"),
        ("jobstatus=" + ",".join(f"{n}*" for n in range(21)), "At most 20 values"),
        ("computingsite=" + ",".join(map(str, range(1_001))), "more than 1,000 values"),
    ],
)
def test_invalid_parameters_are_named(look_up, db, query, reason):
    answer = look_up(query)

    assert (answer.status_code, answer.json()["code"]) == (400, "parameter")
    assert reason in answer.json()["detail"]


def test_bodies_in_chunks_are_refused(client, call, sam):
    token = call("token", "create", "read", "--user", "sam")
    answer = client.generic(
        "POST",
        "/api/v1/jobs/query/",
        b"pandaid=1",
        content_type="application/x-www-form-urlencoded",
        headers={"Authorization": f"Token {token}"},
        CONTENT_LENGTH="",
    )

    assert (answer.status_code, answer.json()["code"]) == (411, "length")


@pytest.mark.parametrize("body", ["[1]", "{", "[" * 100_000, '"x"', "nul\x00"])
def test_bodies_that_are_no_object_are_refused(look_up, db, body):
    assert look_up("", body=body).status_code == 400


def test_many_tasks_of_arrays_are_found_together(look_up, new_job, django_assert_max_num_queries):
    task = new_job({"opens": 2}, batch_id="77", array_index="4")
    new_job({"opens": 3}, batch_id="77", array_index="5")
    ids = [task.display_id, *(f"{number}[5]" for number in range(100, 20_000 + 99))]
    look_up("pandaid=1")

    with django_assert_max_num_queries(6):
        answer = look_up("", body=json.dumps({"batchid": ids, "fields": ["open_total"]})).json()

    assert len(answer) == 20_000
    assert {key: record for key, record in answer.items() if record} == {"77[4]": {"open_total": 2}}


@pytest.mark.parametrize("name", ["pandaid", "batchid", "jobstatus", "produsername"])
def test_lone_surrogates_match_nothing(look_up, db, name):
    answer = look_up("", body=json.dumps({name: ["\ud800", "x\ud800*"], "days": 1}))

    assert answer.status_code == 200
    assert set(answer.json().values()) <= {None}


def test_many_stars_in_sequence_are_one(look_up, pilot):
    assert set(look_up(f"days=9999&jobstatus=f{'*' * 900}").json()) == {"11", "12"}


def test_hostile_ids_match_nothing(look_up, pilot):
    answer = look_up("pandaid=9999999999999999999,-1,x\x00,' OR 1=1&jeditaskid=1e3,%F0%9F%92%A5")

    assert answer.status_code == 200
    assert set(answer.json().values()) == {None}


def test_an_unchanged_look_up_is_not_sent_again(client, secret_of, pilot):
    headers = {"Authorization": f"Bearer {secret_of('sam', is_staff=True)}"}
    first = client.get(f"{QUERY}?json&pandaid=11", headers=headers)
    again = {**headers, "If-None-Match": first["ETag"]}

    assert client.get(f"{QUERY}?json&pandaid=11", headers=again).status_code == 304
    WorkloadJob.objects.filter(panda_id=11).update(state="failed")
    assert client.get(f"{QUERY}?json&pandaid=11", headers=again).status_code == 200
    assert first["Cache-Control"] == "private, max-age=30"
    assert {"Authorization", "Accept"} <= set(first["Vary"].split(", "))


def test_the_number_of_queries_is_independent_of_the_number_of_jobs(
    look_up, new_job, put_inside, django_assert_num_queries
):
    look_up("pandaid=1")  # stores the use of the token
    for number in range(0, 90, 3):
        put_inside(new_job(FIGURES), number, number + 1, number + 2)

    with django_assert_num_queries(3):  # token, PanDA jobs, batch jobs
        answer = look_up(f"pandaid={','.join(map(str, range(90)))}")

    assert all(answer.json().values())


def test_changed_rights_apply_to_the_next_look_up(client, secret_of, pilot):
    headers = {"Authorization": f"Token {secret_of('charlie', is_staff=True)}"}

    def visible():
        by_panda_id, by_batch_id = (
            client.get(f"{QUERY}?{ids}", headers=headers).json()
            for ids in ("pandaid=11", f"batchid={pilot.batch_id}")
        )
        return [bool(*answer.values()) for answer in (by_panda_id, by_batch_id)]

    charlie = User.objects.get(username="charlie")
    assert visible() == [True, True]
    User.objects.filter(pk=charlie.pk).update(is_staff=False)
    assert visible() == [False, False]
    charlie.groups.add(Group.objects.create(name=pilot.project))
    assert visible() == [True, True]
    charlie.groups.clear()
    assert visible() == [False, False]
