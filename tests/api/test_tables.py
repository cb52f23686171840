"""Tables of jobs: pages, order, formats."""

import csv
import io
import json

import polars as pl
import pytest

from ioportal.api.tables.columns import JOBS, TABLES
from ioportal.api.tables.pages import Rows
from ioportal.jobs.job_facts import facts
from ioportal.jobs.models import Job
from tests.logs import at

HOSTILE = '=cmd|"a"!A1,\n\x1b[31m\u202e'
CSV, NDJSON, PARQUET = "text/csv", "application/x-ndjson", "application/vnd.apache.parquet"


@pytest.fixture
def table(get):
    """Request a table with the token of a user."""

    def send(query="", user="sam", accept="application/json"):
        return get(f"jobs/?{query}", user, Accept=accept)

    return send


@pytest.fixture
def jobs(new_job):
    """Create jobs with known and unknown, equal and different figures."""
    return [
        new_job({"opens": 5, "read_bytes": 1 << 40, "node_count": 2}, name=HOSTILE),
        new_job({"opens": 7}, name="", started_at=at("12:00:00.5")),
        new_job({"opens": None}, state="failed"),
        new_job({"opens": 5}, owner="bob", project="ENG103"),
        new_job(started_at=None),
    ]


def test_all_formats_have_the_same_rows(table, jobs):
    fields = "id,name,started_at,opens,read_bytes,simulated"
    expected = [
        {
            "id": job.pk,
            "name": job.name,
            "started_at": job.started_at,
            "opens": getattr(getattr(job, "statistics", None), "opens", None),
            "read_bytes": getattr(getattr(job, "statistics", None), "read_bytes", None),
            "simulated": False,
        }
        for job in Job.objects.select_related("statistics").order_by("pk")
    ]
    query = f"sort=id&fields={fields}"

    in_parquet = pl.read_parquet(b"".join(table(query, accept=PARQUET)))
    assert in_parquet.to_dicts() == expected

    for row in expected:
        moment = row["started_at"]
        row["started_at"] = moment and moment.isoformat().removesuffix("+00:00") + "Z"
    expected[1]["started_at"] = "2017-07-05T12:00:00.500Z"
    assert table(query).json() == {"next": None, "rows": expected}
    lines = b"".join(table(query, accept=NDJSON)).decode().splitlines()
    assert list(map(json.loads, lines)) == expected

    rows = list(csv.DictReader(io.StringIO(b"".join(table(query, accept=CSV)).decode())))
    assert rows[0]["name"] == f"'{HOSTILE}"
    assert [row["opens"] for row in rows] == ["5", "7", "", "5", ""]
    assert [row["started_at"] for row in rows] == [row["started_at"] or "" for row in expected]


def test_rows_have_the_names_and_values_of_the_json_of_a_job(table, jobs):
    job = Job.objects.select_related("statistics", "cluster").get(pk=jobs[0].pk)
    (row,) = table(f"fields={','.join(JOBS.paths)}&q={job.batch_id}").json()["rows"]
    page = facts(job, job.statistics, None)
    times = {"submitted_at", "started_at", "ended_at", "computed_at"}

    assert row.keys() <= page.keys()
    assert {name: value for name, value in row.items() if name not in times} == {
        name: page[name] for name in row.keys() - times
    }


@pytest.mark.parametrize("sort", ["opens", "-opens", "name", "-started_at", "quality", "-id"])
def test_pages_in_any_order_have_every_job_once(table, jobs, sort):
    seen, cursor = [], ""
    while cursor is not None:
        page = table(f"limit=2&sort={sort}&cursor={cursor}&fields=id,opens").json()
        seen += page["rows"]
        cursor = page["next"]

    assert sorted(row["id"] for row in seen) == sorted(job.pk for job in jobs)
    if "opens" in sort:
        known = sorted([5, 5, 7], reverse=sort.startswith("-"))
        assert [row["opens"] for row in seen] == [*known, None, None]


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
@pytest.mark.usefixtures("jobs")
def test_every_column_sorts_and_pages(table, put_inside):
    put_inside(Job.objects.earliest("pk"), 1, 2, 3)
    count = table.kind.model.objects.count()

    for name in table.paths:
        for descending in (True, False):
            rows = Rows(table, table.kind.model.objects.all(), ["id"], name, descending)
            frames = [frame for frame, _ in rows.pages(None, 1)]
            assert pl.concat(frames)["id"].n_unique() == len(frames) == count, name


def test_users_see_their_own_jobs_by_the_filters_of_the_pages(table, jobs):
    def owners(query, user):
        return [row["owner"] for row in table(query, user).json()["rows"]]

    assert owners("", "bob") == ["bob"]
    assert owners("", "charlie") == []
    assert owners("state=failed", "sam") == ["alice"]
    assert owners("user=bob&opens_from=5", "sam") == ["bob"]
    assert len(owners("quality=good&limit=3", "sam")) == 3


def test_a_limit_of_a_stream(table, jobs):
    lines = b"".join(table("format=ndjson&limit=3&sort=id&fields=id")).splitlines()

    assert list(map(json.loads, lines)) == [{"id": job.pk} for job in jobs[:3]]


@pytest.mark.parametrize(
    ("query", "accept", "status", "reason"),
    [
        ("usr=alice", "*/*", 400, "It is not known"),
        ("start=yesterday", "*/*", 400, "'start'"),
        ("sort=opens,id", "*/*", 400, "is not one of id, cluster"),
        ("fields=opens,password", "*/*", 400, "'password' is not one of"),
        ("format=xml", "*/*", 400, "json, csv, ndjson, parquet"),
        ("", "image/png", 406, "application/json, text/csv"),
        ("limit=0", "*/*", 400, "above 0"),
        ("cursor=x", "*/*", 400, "Send the value 'next'"),
        ("cursor=WyJvcGVucyIsICJhIiwgMV0&sort=opens", "*/*", 400, "Send the value 'next'"),
        ("cursor=WyItaWQiLCA1LCA1XQ&sort=opens", "*/*", 400, "another order"),
        ("cursor=WyItaWQiLCAxLCAxZTk5XQ", "*/*", 400, "Send the value 'next'"),
        ("cursor=WyJuYW1lIiwgIlx1MDAwMCIsIDVd&sort=name", "*/*", 400, "Send the value 'next'"),
        ("cursor=WyJuYW1lIiwgIlx1ZDgwMCIsIDVd&sort=name", "*/*", 400, "Send the value 'next'"),
        (
            "cursor=WyJzdGFydGVkX2F0IiwgIjAwMDEtMDEtMDFUMDA6MDA6MDArMjM6NTkiLCA1XQ&sort=started_at",
            "*/*",
            400,
            "Send the value 'next'",
        ),
        ("cursor=%F0%9F%92%A5", "*/*", 400, "Send the value 'next'"),
    ],
)
def test_invalid_queries(table, jobs, query, accept, status, reason):
    answer = table(query, accept=accept)

    assert answer.status_code == status
    assert reason in answer.json()["detail"]
