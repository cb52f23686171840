"""The mail policy and silences on the Site page."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from ioportal.alerts.models import MailPolicy, Silence
from ioportal.site.models import UserAccount

ADD = "/admin/alerts/mailpolicy/add/"


@pytest.fixture
def policy(db):
    UserAccount.objects.create(name="robot")
    return MailPolicy.objects.create(
        default_mode="automatic", modes={"impact": "off"}, wait=timedelta(minutes=5),
        interval=timedelta(hours=4), repeat=timedelta(days=7), quiet_from=22, quiet_until=7,
        holidays=["2026-12-25"], daily_cap=2, hourly_brake=20, excluded=["robot"], reason="first",
    )  # fmt: skip


def given(client):
    """Return the values of the empty form."""
    form = client.get(ADD).context["adminform"].form
    return {
        field.html_name: value
        for field in form
        if (value := field.field.prepare_value(field.value())) not in (None, False)
    }


def errors(page):
    return re.findall(
        '<ul class="errorlist"[^>]*>.*?<li>(.*?)</li>', page.content.decode(), re.DOTALL
    )


def test_a_new_policy_begins_with_the_current_one(as_staff, policy):
    facts = given(as_staff)
    assert (facts["wait"], facts["interval"], facts["repeat"]) == ("5", "240", "7")
    assert "reason" not in facts

    as_staff.post(ADD, {**facts, "mode_small-reads": "approval", "repeat": "2.5", "reason": "more"})

    latest = MailPolicy.objects.first()
    assert latest.pk != policy.pk
    assert latest.modes == {"impact": "off", "small-reads": "approval"}
    assert latest.repeat == timedelta(days=2.5)
    same = ("wait", "quiet_from", "quiet_until", "excluded", "follow_up_after", "default_mode")
    assert [getattr(latest, name) for name in same] == [getattr(policy, name) for name in same]
    assert [str(day) for day in latest.holidays] == policy.holidays


def test_the_first_policy_begins_with_the_default(as_staff):
    assert {"wait": "5", "default_mode": "approval"}.items() <= given(as_staff).items()


def test_errors_name_the_remedy(as_staff, policy):
    wrong = {"holidays": "25.12.2026", "excluded": "robot, rob0t", "reason": "x"}
    page = as_staff.post(ADD, {**given(as_staff), **wrong})

    dates, users = errors(page)
    assert "such as 2026-12-25" in dates
    assert users.startswith("No account or jobs of rob0t.")
    assert MailPolicy.objects.count() == 1


def test_silences_are_of_known_users_and_rules_and_deletable(as_staff, policy):
    until = timezone.now() + timedelta(days=1)
    facts = {"recipient": "rob0t", "rule": "impct", "until_0": f"{until:%Y-%m-%d}",
             "until_1": "12:00:00", "reason": "x"}  # fmt: skip
    page = as_staff.post("/admin/alerts/silence/add/", facts)
    assert len(errors(page)) == 2
    assert not Silence.objects.exists()

    as_staff.post("/admin/alerts/silence/add/", {**facts, "recipient": "robot", "rule": "impact"})
    silence = Silence.objects.get()
    as_staff.post(f"/admin/alerts/silence/{silence.pk}/delete/", {"post": "yes"})
    assert not Silence.objects.exists()
