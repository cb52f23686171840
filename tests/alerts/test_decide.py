"""Decisions about mails, with the time as an argument."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ioportal.alerts.decide import (
    FRESH,
    Candidate,
    Mailed,
    Mode,
    Policy,
    Silence,
    Verdict,
    decide,
)

NOW = datetime(2017, 7, 6, 12, 0, tzinfo=UTC)  # a Thursday
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
POLICY = Policy(ZoneInfo("UTC"), default_mode=Mode.AUTOMATIC)
STORM = Candidate(
    case=1,
    rule="impact",
    is_about_impact=True,
    is_notice=False,
    state="open",
    recipient="alice",
    address="alice@example.org",
    filesystem="lake",
    value=200.0,
    opened_at=NOW - HOUR,
    lag=timedelta(seconds=20),
)
SMALL_READS = replace(STORM, case=2, rule="small-reads", is_about_impact=False)


def only(*candidates, policy=POLICY, silences=(), mailed=(), now=NOW):
    """Return the only decision."""
    [decision] = decide(candidates, silences, mailed, policy, now)
    return decision


def test_a_new_case_is_mailed_about():
    decision = only(STORM)

    assert decision.verdict is Verdict.MAIL
    assert not decision.needs_approval
    assert decision.reason == "New case."


def test_cases_of_a_recipient_and_filesystem_are_one_mail():
    same = replace(STORM, case=3, rule="impact-of-many-jobs")
    elsewhere = replace(STORM, case=4, filesystem="pond")

    mails = decide([STORM, elsewhere, same], (), (), POLICY, NOW)

    assert [[each.case for each in mail.candidates] for mail in mails] == [[1, 3], [4]]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"is_notice": True}, "It is a notice: advice, not a reason for a mail."),
        ({"state": "suppressed"}, "Its data quality is not good."),
        (
            {"state": "acknowledged"},
            "The case is acknowledged: a member of staff is responsible.",
        ),
        ({"is_about_data": True}, "The rule is about data quality: it blames no user."),
        ({"lag": 3 * HOUR}, "Found in historical data that was loaded later."),
        ({"recipient": ""}, "Its owner is unknown."),
        ({"recipient": "root"}, "root is excluded from mails."),
        ({"address": ""}, "alice has no mail address."),
        ({"rule": "outlier"}, "Mails about this rule are off."),
    ],
)
def test_an_unfit_case_is_withheld_with_its_reason(changes, reason):
    policy = replace(POLICY, modes={"outlier": Mode.OFF}, excluded={"root"})

    decision = only(replace(STORM, **changes), policy=policy)

    assert (decision.verdict, decision.reason) == (Verdict.WITHHELD, reason)


@pytest.mark.parametrize("filesystem", ["lake", ""], ids=["of a job", "of a group of jobs"])
def test_impact_inhibits_load_of_the_same_user_and_filesystem(filesystem):
    storm = replace(STORM, filesystem=filesystem)
    decisions = decide([SMALL_READS, storm], (), (), POLICY, NOW)

    assert {each.candidates[0].case: each.reason for each in decisions} == {
        2: "Case 1 about impact on others explains it.",
        1: "New case.",
    }
    elsewhere = replace(STORM, filesystem="pond")
    assert len(decide([SMALL_READS, elsewhere], (), (), POLICY, NOW)) == 2


@pytest.mark.parametrize("wanted", [{"recipient": "alice"}, {"rule": "impact"}, {}])
def test_a_silence_withholds_until_its_end(wanted):
    silence = Silence(NOW + HOUR, **wanted, reason="maintenance")

    withheld = only(STORM, silences=[silence])

    assert withheld.reason == "Silenced until 2017-07-06 13:00 UTC: maintenance"
    assert only(STORM, silences=[silence], now=NOW + HOUR).verdict is Verdict.MAIL
    other = Silence(NOW + HOUR, filesystem="pond")
    assert only(STORM, silences=[other]).verdict is Verdict.MAIL


@pytest.mark.parametrize(
    ("after", "growth", "verdict"),
    [(6 * DAY, 5, Verdict.WITHHELD), (8 * DAY, 1.9, Verdict.WITHHELD), (8 * DAY, 2, Verdict.MAIL)],
)
def test_a_case_is_repeated_if_it_has_grown(after, growth, verdict):
    mailed = replace(STORM, mailed_at=NOW - after, mailed_value=STORM.value / growth)

    assert only(mailed).verdict is verdict


def test_a_mail_waits_for_the_end_of_a_queue_but_not_for_long():
    harming = replace(STORM, is_going_on=True)
    policy = replace(POLICY, wait=timedelta(0))

    def verdict(minutes):
        return only(
            harming, policy=policy, now=STORM.opened_at + timedelta(minutes=minutes)
        ).verdict

    assert (verdict(9), verdict(10)) == (Verdict.LATER, Verdict.MAIL)


@pytest.mark.parametrize(
    ("changes", "mailed", "reason"),
    [
        pytest.param({"wait": 2 * HOUR}, (), "Waits for further cases until 13:00:00.", id="wait"),
        pytest.param(
            {},
            [Mailed("alice", "lake", NOW - HOUR)],
            "The last mail to alice was recent; the next one may follow at 15:00.",
            id="interval",
        ),
        pytest.param(
            {"quiet_from": 22, "quiet_until": 13}, (), "Quiet hours last until 13:00.", id="quiet"
        ),
        pytest.param({"holidays": {date(2017, 7, 6)}}, (), "Today is a holiday.", id="holiday"),
        pytest.param(
            {"daily_cap": 1},
            [Mailed("alice", "pond", NOW - HOUR)],
            "alice has reached the limit of 1 within 24 hours.",
            id="cap",
        ),
        pytest.param(
            {"hourly_brake": 1},
            [Mailed("bob", "lake", NOW - HOUR / 2)],
            "All recipients have reached the limit of 1 within an hour.",
            id="brake",
        ),
    ],
)
def test_a_mail_waits_with_its_reason(changes, mailed, reason):
    decision = only(STORM, policy=replace(POLICY, **changes), mailed=mailed)

    assert (decision.verdict, decision.reason) == (Verdict.LATER, reason)


def test_no_mails_on_weekends_if_the_site_says_so():
    saturday = NOW + 2 * DAY
    policy = replace(POLICY, on_weekends=False)

    assert only(STORM, policy=policy, now=saturday).reason == "No mails are sent on weekends."
    assert only(STORM, policy=policy, now=saturday + 2 * DAY).verdict is Verdict.MAIL


def test_one_rule_in_approval_mode_makes_the_mail_a_draft():
    policy = replace(POLICY, modes={"impact-of-many-jobs": Mode.APPROVAL})
    other = replace(STORM, case=3, rule="impact-of-many-jobs")

    assert only(STORM, other, policy=policy).needs_approval
    assert not only(STORM, policy=policy).needs_approval


candidates = st.builds(
    replace,
    st.just(STORM),
    case=st.integers(1, 1_000),
    state=st.sampled_from(["open", "acknowledged", "suppressed"]),
    recipient=st.sampled_from(["alice", "bob", "carol", ""]),
    filesystem=st.sampled_from(["lake", "pond"]),
    is_about_impact=st.booleans(),
    is_notice=st.booleans(),
    opened_at=st.timedeltas(timedelta(0), DAY).map(lambda ago: NOW - ago),
    lag=st.timedeltas(timedelta(0), 4 * HOUR),
)


@settings(max_examples=100)
@given(st.lists(candidates, max_size=30, unique_by=lambda each: each.case))
def test_each_case_gets_one_decision_and_limits_hold(cases):
    decisions = decide(cases, (), (), POLICY, NOW)

    decided = [each.case for decision in decisions for each in decision.candidates]
    assert sorted(decided) == sorted(each.case for each in cases)
    assert all(decision.reason for decision in decisions)
    mails = [each for each in decisions if each.verdict is Verdict.MAIL]
    for mail in mails:
        assert {(each.recipient, each.filesystem) for each in mail.candidates} == {
            (mail.candidates[0].recipient, mail.candidates[0].filesystem)
        }
        assert all(each.recipient and each.state == "open" for each in mail.candidates)
        assert all(each.lag <= FRESH and not each.is_notice for each in mail.candidates)
    recipients = [mail.candidates[0].recipient for mail in mails]
    assert all(recipients.count(name) <= POLICY.daily_cap for name in recipients)


@settings(max_examples=50)
@given(
    st.lists(candidates, min_size=1, max_size=5, unique_by=lambda each: each.case),
    st.timedeltas(timedelta(0), HOUR).map(lambda ago: Mailed("alice", "lake", NOW - ago)),
)
def test_reasons_do_not_change_with_the_clock_alone(cases, mailed):
    policy = replace(POLICY, wait=2 * HOUR, quiet_from=13, quiet_until=14)

    reasons = {case.case: [] for case in cases}
    for turn in range(2 * 60 * 6):  # of 30 s, for six hours
        now = NOW + turn * timedelta(seconds=30)
        for decision in decide(cases, (), (mailed,), policy, now):
            for case in decision.candidates:
                if decision.reason not in reasons[case.case][-1:]:
                    reasons[case.case].append(decision.reason)

    assert max(map(len, reasons.values())) <= 5


@pytest.mark.parametrize(
    ("facts", "mailed_about"),
    [
        ({"state": "acknowledged"}, set()),  # by staff, who talk to the user
        ({"state": "suppressed"}, {SMALL_READS.case}),
        ({"lag": 300 * DAY}, {SMALL_READS.case}),
        ({"has_findings": False}, {SMALL_READS.case}),
        ({"rule": "off"}, {SMALL_READS.case}),
    ],
)
def test_only_impact_that_can_be_mailed_about_explains_load(facts, mailed_about):
    policy = replace(POLICY, modes={"off": Mode.OFF})

    decisions = decide([replace(STORM, **facts), SMALL_READS], (), (), policy, NOW)

    mails = [each for each in decisions if each.verdict is Verdict.MAIL]
    assert {each.case for mail in mails for each in mail.candidates} == mailed_about
