"""Triage of flags on pages, and what users see of it."""

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from ioportal.flags import triage
from ioportal.flags.models import Flag
from tests.web.flags.lists import listed, post
from tests.web.reading import text_of, words_of


def test_resolutions_are_shown_on_similar_flags(as_staff, new_flag):
    past = new_flag(owner="bob")
    words = words_of(
        post(as_staff, "/flags/", past, action="resolve", reason="moved conda to CVMFS\n<i>all</i>")
    )
    answer = as_staff.get(f"/flags/{new_flag().pk}/")

    assert "1 flag resolved." in words
    assert "No flags to triage" in words
    assert "by sam: moved conda to CVMFS <i>all</i>" in words_of(answer)
    assert "<i>all" not in text_of(answer)


def test_several_flags_are_triaged_at_once_and_filters_stay(as_staff, sam, new_flag):
    flags = [new_flag(), new_flag()]

    answer = post(as_staff, "/flags/?user=alice", *flags, action="assign", assignee="sam")

    assert answer.redirect_chain == [("/flags/?user=alice", 302)]
    assert {flag.assignee for flag in Flag.objects.all()} == {sam}
    assert listed(as_staff, "&assignee=me") == listed(as_staff)
    assert listed(as_staff, "&assignee=none") == []


def test_a_flag_is_muted_until_the_given_time(as_staff, new_flag):
    flag = new_flag()

    post(
        as_staff,
        f"/flags/{flag.pk}/",
        flag,
        action="mute",
        until="2190-01-01T00:00",
        reason="known",
    )

    assert listed(as_staff) == []
    assert listed(as_staff, "&state=muted") == [flag.pk]
    assert "Until 2190-01-01 00:00. known" in words_of(as_staff.get(f"/flags/{flag.pk}/"))


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
@pytest.mark.parametrize("path", ["/flags/", "/flags/{}/"])
def test_invalid_actions_show_errors_and_keep_the_input(path, fields, words, as_staff, new_flag):
    flag = new_flag()

    answer = post(as_staff, path.format(flag.pk), flag, **{"reason": "typed", **fields})

    assert words in words_of(answer)
    assert fields.get("reason", "typed") in text_of(answer)
    assert " autofocus" in text_of(answer)  # the form is below the flags
    assert not flag.events.exists()


def test_an_action_without_flags_is_refused(as_staff, new_flag):
    new_flag()

    assert "Select at least one flag." in words_of(post(as_staff, "/flags/", action="acknowledge"))


def test_owners_do_not_see_triage_by_staff(client, alice, sam, new_flag):
    flag = new_flag()
    triage.comment([flag.pk], sam, "secret of staff")
    triage.assign([flag.pk], sam, sam)
    triage.resolve([flag.pk], sam, "secret reason")
    new_flag(state="suppressed", suppression_reasons=["secret doubts"])
    client.force_login(alice)

    for path in (f"/flags/{flag.pk}/", "/flags/?state=all", f"/flags/{new_flag().pk}/"):
        for query in ("", "format=json"):
            text = text_of(client.get(f"{path}{'&' if '?' in path else '?'}{query}"))
            assert "secret" not in text
            assert ">sam<" not in text
            assert '"sam"' not in text
    assert listed(client, "&state=all").count(flag.pk) == 1
    assert client.get("/flags/?state=suppressed&format=json").status_code == 400


def test_flags_with_insufficient_data_stay_hidden_from_owners(client, alice, sam, new_flag):
    flag = new_flag(state="suppressed", suppression_reasons=["Its data are partial."])
    triage.resolve([flag.pk], sam, "The reads are back.")

    known = new_flag(state="acknowledged", suppression_reasons=["Its data are partial."])

    for person, expected in ((alice, []), (sam, [flag.pk])):
        client.force_login(person)
        assert listed(client, "&state=acknowledged") == (expected and [known.pk])
        assert listed(client, "&state=resolved") == expected
        assert client.get(f"/flags/{flag.pk}/").status_code == (200 if expected else 404)
        assert f"/jobs/{flag.job_id}/" not in text_of(client.get("/jobs/?flag=any"))
    assert "Only staff can see this flag." in words_of(client.get(f"/flags/{flag.pk}/"))


@pytest.mark.parametrize("action", ["resolve", "comment", "acknowledge"])
def test_owners_cannot_triage(action, as_alice, new_flag):
    flag = new_flag()

    for path in ("/flags/", f"/flags/{flag.pk}/"):
        assert post(as_alice, path, flag, action=action, reason="so").status_code == 403
    assert not flag.events.exists()
    assert "Acknowledge" not in words_of(as_alice.get(f"/flags/{flag.pk}/"))


def test_the_navigation_counts_flags_to_triage(client, sam, alice, new_flag):
    new_flag()
    new_flag(state="muted", muted_until=timezone.now())

    for person, expected in ((sam, "Flags 1"), (alice, "Flags Incidents")):
        client.force_login(person)
        assert expected in words_of(client.get("/incidents/"))


def test_only_active_staff_are_assignees(as_staff, alice, new_flag):
    User.objects.create_user("gone", is_staff=True, is_active=False)
    new_flag()
    text = text_of(as_staff.get("/flags/"))

    assert '<option value="sam">' in text
    assert '<option value="alice">' not in text
    assert '<option value="gone">' not in text
