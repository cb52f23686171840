"""Application names of any job name: users choose job names."""

import polars as pl
import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from ioportal.jobs.application_names import application_name, application_name_sql
from ioportal.jobs.models import Job
from ioportal.load.impact import job_groups
from ioportal.telemetry.models import JobGroup
from tests.logs import Run, sacct

MILLION = 1_000_000


def named(name):
    return pl.DataFrame({"name": [name]}).select(application_name(pl.col("name"))).item()


@pytest.mark.parametrize(
    ("name", "application"),
    [
        pytest.param("1" * 1_000, "", id="digits"),
        pytest.param("a1" * MILLION, "a*" * (MILLION - 1) + "a", id="digits between letters"),
        pytest.param("-" * MILLION + "a", "-" * MILLION + "a", id="punctuation before a letter"),
        pytest.param("-a" * MILLION + "-" * MILLION, "-a" * MILLION, id="punctuation"),
        pytest.param("a\x00b_1", "a\x00b", id="NUL"),
        pytest.param("\u202esmiS\u202c_12", "\u202esmiS", id="right to left"),
        pytest.param("scan_\u0667_post_\u0664", "scan_*_post", id="Arabic digits"),
        pytest.param("a\n1\n", "a", id="lines"),
    ],
)
def test_hostile_names_have_an_application_name(name, application):
    assert named(name) == application


@given(st.text(max_size=80))
def test_an_application_name_is_that_of_itself(name):
    application = named(name)

    assert named(application) == application
    assert not any(character.isdecimal() for character in application)


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["uq_sweep_34", "scan_7_post", "h5_to_csv", "12", "", "été_3"])
def test_the_database_gives_the_same_name(name):
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {application_name_sql('%s')}", [name])
        assert cursor.fetchone() == (named(name),)


@pytest.mark.usefixtures("site")
def test_long_names_of_jobs_are_truncated_when_stored(logs, ingest):
    run = Run("77", user="u" * 300, name="a1\u202e" * 100_000)
    ingest("sacct", logs("s", sacct(run)), cluster="anvil")

    job = Job.objects.get()
    assert (len(job.owner), len(job.name)) == (64, 255)
    [text] = job_groups.members([job.pk])["application"]
    group = JobGroup.objects.create(kind=JobGroup.Kind.APPLICATION, text=text)
    assert job_groups.Application.from_text(group.text) == ("u" * 64, ("a*\u202e" * 20))
