"""The log of mitigations: its constraints, its history, and scopes."""

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction

from ioportal.changes import mitigations
from ioportal.changes.models import DismissedChange, Mitigation
from ioportal.jobs.populations import scopes
from tests.logs import at

NOON = at("12:00")
HOUR = timedelta(hours=1)
FACTS = {"title": "Fix", "kind": "code", "started_at": NOON}


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param({"title": ""}, id="no title"),
        pytest.param({"completed_at": NOON}, id="rolled out in no time"),
        pytest.param({"completed_at": NOON - HOUR}, id="complete before the start"),
        pytest.param({"reverted_at": NOON}, id="reverted at the start"),
        pytest.param(
            {"completed_at": NOON + 2 * HOUR, "reverted_at": NOON + HOUR}, id="reverted too early"
        ),
        pytest.param({"metric": "opens", "factor": 0}, id="factor 0"),
        pytest.param({"metric": "opens", "factor": -1}, id="negative factor"),
        pytest.param({"factor": 2}, id="a factor of no metric"),
    ],
)
def test_the_database_refuses_contradictions(db, facts):
    with pytest.raises(IntegrityError), transaction.atomic():
        Mitigation.objects.create(**{**FACTS, **facts})


def test_a_mitigation_with_a_key_is_logged_once(db):
    for title in ("Fix", "Another title"):
        mitigations.log_once([Mitigation(**{**FACTS, "title": title}, key="demo:fix")])

    assert Mitigation.objects.get().title == "Fix"


def test_a_dismissed_change_is_stored_once(db):
    facts = {"scope": "user=alice", "day": NOON.date(), "by": "sam"}
    DismissedChange.objects.create(**facts)

    with pytest.raises(IntegrityError), transaction.atomic():
        DismissedChange.objects.create(**facts)


@pytest.mark.parametrize(
    ("factor", "text"),
    [
        (0.25, "Opens fall 4\N{MULTIPLICATION SIGN}"),
        (1.5, "Opens rise 1.5\N{MULTIPLICATION SIGN}"),
        (1, "Opens do not change"),
        (None, "Opens"),
    ],
)
def test_the_expectation_is_shown_in_words(factor, text):
    assert Mitigation(**FACTS, metric="opens", factor=factor).expectation == text


def test_the_history_names_changed_facts_only(db):
    fix = Mitigation(**FACTS)
    mitigations.log(fix, "sam")
    mitigations.change(fix, "sam", [])
    mitigations.change(fix, "ada", ["title", "start"])

    assert [(event.by, event.text) for event in fix.events.all()] == [
        ("sam", "Logged by hand."),
        ("ada", "Changed: title, start."),
    ]


@pytest.mark.parametrize(
    ("query", "scope"),
    [
        ("start=2017-07-05&user=alice&last=24h&end=2017-07-06&sort=-opens", "user=alice"),
        ("name=b&user=a", "user=a&name=b"),
        ("unit=panda&computingsite=X&user=alice", "unit=panda&computingsite=X"),
        ("state=failed&state=timeout&user=", "state=failed&state=timeout"),
        ("unit=odd&x=%00", ""),
    ],
)
def test_a_scope_has_filters_but_no_times(query, scope):
    assert scopes.scope_of(query) == scope


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("", "user=alice", True),
        ("user=alice", "user=bob", False),
        ("user=alice,bob", "user=bob&nodes_min=5", True),
        ("user=alice", "project=PHY12", True),
        ("name=pilot", "name=ATLAS_PILOT", True),
        ("name=pilot", "name=relax", False),
        ("state=failed&state=timeout", "state=timeout", True),
        ("unit=panda&cluster=anvil", "user=alice&cluster=birch", False),
        ("unit=panda&produsername=A B", "unit=panda&produsername=B C", False),
    ],
)
def test_scopes_overlap_unless_names_differ(first, second, expected):
    assert scopes.may_overlap(first, second) is expected
    assert scopes.may_overlap(second, first) is expected


@pytest.mark.parametrize(
    ("scope", "expected"),
    [("", True), ("cluster=anvil", True), ("unit=panda", True), ("user=alice", False)],
)
def test_a_scope_of_all_jobs_is_site_wide(scope, expected):
    assert scopes.is_site_wide(scope) is expected
