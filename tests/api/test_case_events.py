"""The feed of events of cases."""

from datetime import timedelta

import pytest
from django.utils import timezone

from ioportal.api.cases import SETTLED
from ioportal.findings.models import CaseEvent


@pytest.fixture
def events(get):
    """Read the feed with the token of a user."""

    def read(query="", user="sam"):
        answer = get(f"cases/events/?{query}", user)
        assert answer.status_code == 200, answer.content
        return answer.json()

    return read


def _settle():
    CaseEvent.objects.update(at=timezone.now() - SETTLED - timedelta(seconds=1))


def test_events_are_read_once_in_order(events, new_case):
    cases = [new_case() for _ in range(3)]
    cases[1].events.create(kind=CaseEvent.Kind.ACKNOWLEDGED, by="sam", text="I look at it")
    assert events()["events"] == []
    _settle()
    new_case()

    seen, after, has_more = [], 0, True
    while has_more:
        page = events(f"after={after}&limit=2")
        seen += page["events"]
        after, has_more = page["next"], page["has_more"]

    opened = [event for event in seen if event["kind"] == "opened"]
    assert [event["case"]["id"] for event in opened] == [case.pk for case in cases]
    assert opened[0]["case"]["url"] == f"http://localhost:8000/cases/{cases[0].pk}/"
    assert (seen[-1]["kind"], seen[-1]["text"]) == ("acknowledged", "I look at it")
    assert events(f"after={after}") == {"events": [], "next": after, "has_more": False}


def test_users_see_their_own_cases_without_triage(events, new_case, new_job):
    own = new_case()
    own.events.create(kind=CaseEvent.Kind.ACKNOWLEDGED, by="sam", text="I look at it")
    new_case(new_job(owner="bob", project="ENG103", name="other"))
    _settle()

    seen = events(user="alice")["events"]

    assert [(event["case"]["id"], event["kind"]) for event in seen] == [(own.pk, "opened")]
    assert "advice" not in seen[0]["case"]
