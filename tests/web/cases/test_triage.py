"""Triage of cases on pages, and its visibility to users."""

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from ioportal.findings.cases import triage
from ioportal.findings.models import Case
from tests.web.cases.lists import listed, post
from tests.web.reading import text_of, words_of


def test_resolutions_are_shown_on_similar_cases(as_staff, new_case):
    past = new_case()
    words = words_of(
        post(as_staff, "/cases/", past, action="resolve", reason="moved conda to CVMFS\n<i>all</i>")
    )
    answer = as_staff.get(f"/cases/{new_case().pk}/")

    assert "1 case resolved." in words
    assert "No cases to triage" in words
    assert "by sam: moved conda to CVMFS <i>all</i>" in words_of(answer)
    assert "<i>all" not in text_of(answer)


def test_several_cases_are_triaged_at_once_and_filters_stay(as_staff, sam, new_case):
    cases = [new_case(), new_case()]

    answer = post(as_staff, "/cases/?user=alice", *cases, action="assign", assignee="sam")

    assert answer.redirect_chain == [("/cases/?user=alice", 302)]
    assert {case.assignee for case in Case.objects.all()} == {sam}
    assert listed(as_staff, "&assignee=me") == listed(as_staff)
    assert listed(as_staff, "&assignee=none") == []


def test_a_case_is_muted_until_the_given_time(as_staff, new_case):
    case = new_case()

    post(
        as_staff,
        f"/cases/{case.pk}/",
        case,
        action="mute",
        until="2190-01-01T00:00",
        reason="known",
    )

    assert listed(as_staff) == []
    assert listed(as_staff, "&state=muted") == [case.pk]
    assert "Until 2190-01-01 00:00. known" in words_of(as_staff.get(f"/cases/{case.pk}/"))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        pytest.param({"action": "resolve", "reason": ""}, "Describe the fix", id="no reason"),
        pytest.param({"action": "mute"}, "Enter the end of the mute period.", id="no end"),
        pytest.param(
            {"action": "mute", "until": "2017-01-01T00:00"}, "end in the future", id="ended"
        ),
        pytest.param({"action": "mute", "until": "9999-12-31T23:59"}, "less than", id="never"),
        pytest.param({"action": "assign", "assignee": "alice"}, "valid choice", id="no staff"),
        pytest.param({"action": "burn"}, "valid choice", id="no action"),
        pytest.param({"action": "comment", "reason": "a\x00b"}, "Null characters", id="no text"),
    ],
)
@pytest.mark.parametrize("path", ["/cases/", "/cases/{}/"])
def test_invalid_actions_show_errors_and_keep_the_input(path, fields, words, as_staff, new_case):
    case = new_case()

    answer = post(as_staff, path.format(case.pk), case, **{"reason": "typed", **fields})

    assert words in words_of(answer)
    assert fields.get("reason", "typed") in text_of(answer)
    assert " autofocus" in text_of(answer)  # the form is below the cases
    assert [event.kind for event in case.events.all()] == ["opened"]


def test_an_action_without_cases_is_refused(as_staff, new_case):
    new_case()

    assert "Select at least one case." in words_of(post(as_staff, "/cases/", action="acknowledge"))


def test_owners_do_not_see_triage_by_staff(client, alice, sam, new_case):
    case = new_case()
    triage.comment([case.pk], sam, "secret of staff")
    triage.assign([case.pk], sam, sam)
    triage.resolve([case.pk], sam, "secret reason")
    new_case(state="suppressed", flag={"suppression_reasons": ["secret doubts"]})
    client.force_login(alice)

    for path in (f"/cases/{case.pk}/", "/cases/?state=all", f"/cases/{new_case().pk}/"):
        for query in ("", "format=json"):
            text = text_of(client.get(f"{path}{'&' if '?' in path else '?'}{query}"))
            assert "secret" not in text
            assert ">sam<" not in text
            assert '"sam"' not in text
    assert listed(client, "&state=all").count(case.pk) == 1
    assert client.get("/cases/?state=suppressed&format=json").status_code == 400


def test_cases_with_insufficient_data_stay_hidden_from_owners(client, alice, sam, new_case):
    doubtful = {"suppression_reasons": ["Its data are partial."]}
    case = new_case(state="suppressed", flag=doubtful)
    triage.resolve([case.pk], sam, "The reads are back.")
    known = new_case(state="acknowledged", flag=doubtful)
    flag = case.flags.get()

    for person, expected in ((alice, []), (sam, [case.pk])):
        client.force_login(person)
        assert listed(client, "&state=acknowledged") == (expected and [known.pk])
        assert listed(client, "&state=resolved") == expected
        for path in (f"/cases/{case.pk}/", f"/flags/{flag.pk}/"):
            assert client.get(path).status_code == (200 if expected else 404)
        assert f"/jobs/{flag.job_id}/" not in text_of(client.get("/jobs/?flag=any"))
    assert "Only staff can see this flag" in words_of(client.get(f"/flags/{flag.pk}/"))


@pytest.mark.parametrize("action", ["resolve", "comment", "acknowledge"])
def test_owners_cannot_triage(action, as_alice, new_case):
    case = new_case()

    for path in ("/cases/", f"/cases/{case.pk}/"):
        assert post(as_alice, path, case, action=action, reason="so").status_code == 403
    assert [event.kind for event in case.events.all()] == ["opened"]
    assert "Acknowledge" not in words_of(as_alice.get(f"/cases/{case.pk}/"))


def test_the_navigation_counts_cases_to_triage(client, sam, alice, new_case):
    new_case()
    new_case(state="muted", muted_until=timezone.now())
    new_case(severity=1)

    for person, expected in ((sam, "Live Flags 1 Jobs"), (alice, "Live Flags Jobs")):
        client.force_login(person)
        assert expected in words_of(client.get("/incidents/"))


def test_only_active_staff_are_assignees(as_staff, alice, new_case):
    User.objects.create_user("gone", is_staff=True, is_active=False)
    new_case()
    text = text_of(as_staff.get("/cases/"))

    assert '<option value="sam">' in text
    assert '<option value="alice">' not in text
    assert '<option value="gone">' not in text
