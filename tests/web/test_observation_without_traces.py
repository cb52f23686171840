"""Slow servers without traces under observation, as far as a user may see."""

import pytest
from django.utils import timezone

from ioportal.findings import observation_stage
from ioportal.findings.models import Flag
from tests import loading, untraced
from tests.logs import at
from tests.web.reading import json_of, words_of


@pytest.fixture
def set_clock(monkeypatch):
    """Set the current time."""
    return lambda now: monkeypatch.setattr(timezone, "now", lambda: now)


@pytest.fixture(scope="module")
def _stream(module_site, module_logs):
    """Ingest all reads of an untraced server."""
    untraced.ingest(module_logs)


@pytest.fixture
def _observed(_stream, set_clock):
    """Observe the server in its last reads."""
    set_clock(at("12:09:30"))
    observation_stage.observe()


def rows(client):
    return json_of(client.get("/observed/?format=json"))["rows"]


@pytest.mark.usefixtures("_observed")
def test_the_jobs_of_an_array_are_observed_together_until_they_are_accused(as_staff):
    page = words_of(as_staff.get("/servers/mds1/"))
    assert "slow since 2017-07-05 12:06:00 (evaluated until 2017-07-05 12:09:00 )" in page
    assert "Most of the work now (estimated from counters): task of dave 98 %." in page
    assert not Flag.objects.exists()

    loading.evaluate()
    flags = Flag.objects.filter(rule="impact-of-many-jobs", subject="dave:task")
    assert flags.update(severity=Flag.Severity.NOTICE)
    assert [row["accused"] for row in rows(as_staff)] == [False]
    flags.update(severity=Flag.Severity.WARNING)
    assert [row["accused"] for row in rows(as_staff)] == [True]


@pytest.mark.usefixtures("_observed")
def test_others_see_neither_names_nor_times(client, charlie, django_user_model):
    client.force_login(django_user_model.objects.create(username="dave"))
    [own] = rows(client)
    assert (own["name"], own["times"]) == ("task of dave", None)

    client.force_login(charlie)
    [hidden] = rows(client)
    assert (hidden["name"], hidden["share"], hidden["times"]) == ("", None, None)
    page = words_of(client.get("/overview/"))
    assert "Your jobs do less than 10 % of the work. Who does more is shown to staff." in page
    assert "dave" not in page


@pytest.mark.usefixtures("_observed")
@pytest.mark.parametrize(("seconds", "is_listed"), [(120, True), (121, False)])
def test_old_data_says_nothing_about_now(as_staff, set_clock, seconds, is_listed):
    set_clock(at("12:09") + timezone.timedelta(seconds=seconds))

    assert bool(rows(as_staff)) == is_listed
