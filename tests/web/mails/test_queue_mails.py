"""Mails about the queue of a traced server: the waiting of others, and the cause."""

import re

import pytest
from django.db.models import F

from ioportal.alerts import planning
from ioportal.alerts.delivery import outbox
from ioportal.findings.models import Flag
from ioportal.jobs.analysis.anonymity import coarse
from ioportal.site.models import Server, UserAccount
from tests import loading, served
from tests.web.reading import json_of, text_of, words_of

FIGURES = {"value", "highest", "impact_s", "peak_impact_s", "impact_share", "impact_times"}


@pytest.fixture(scope="module", autouse=True)
def _storm(module_site, module_logs):
    served.load(module_logs)
    UserAccount.objects.update_or_create(name="alice", defaults={"email": "alice@example.org"})
    loading.evaluate()
    Flag.objects.update(opened_at=F("until"))


def test_mail_and_pages_name_the_queue_its_cause_and_who_waited(
    db, automatic, mails, as_staff, as_alice
):
    Server.objects.update(capacity_per_s=None)
    planning.plan()
    outbox.send_due(10)
    [(_, mail)] = mails.accepted
    bodies = [words(mail.get_body([kind]).get_content()) for kind in ("plain", "html")]

    exact = f"{Flag.objects.get().job.evidence.impact_s:,.0f} s"
    assert not [body for body in bodies if exact in body]  # bob alone waited
    about, low_s, high_s, less_than = re.search(
        r"85% of the work in a queue of the metadata server mds1, 2017-07-05 12:10:00 to 12:10:44 "
        r"UTC, was from job 77\. Without it, the requests of other users would have waited about "
        r"([\d,]+) s \(22 minutes\) less: this is their extra wait \(([\d,]+) s to ([\d,]+) s: "
        r"within a factor of 2\)\.",
        bodies[0],
    ).group(1, 2, 3, 0)
    low, figure, high = (float(each.replace(",", "")) for each in (low_s, about, high_s))
    assert low < served.SPARED_S < high
    assert figure == pytest.approx(served.SPARED_S, rel=0.05)
    assert high == pytest.approx(2 * figure, rel=0.05)  # not what bob alone waited
    _, per_second, seconds = served.ALICE
    request = (
        f"reduce its metadata RPCs from {per_second} a second (in the {seconds} s in which they "
        "arrived) to below 4 a second"  # of 1 / served.EACH_S
    )
    flag = Flag.objects.get()
    pages = [words_of(as_staff.get(page)) for page in places(flag)]
    for text in (*bodies, *pages, words_of(as_alice.get(f"/cases/{flag.case_id}/"))):
        assert less_than in text
    for text in (*bodies, words_of(as_alice.get(f"/cases/{flag.case_id}/"))):
        assert request in text

    assert "Slows down other jobs (abuse): job 77 of user alice" in pages[0]  # for tickets
    assert "The data of this flag (rpctrace, or mds_stats and job_stats) is good." in pages[1]
    assert "Threshold reached: 2017-07-05 12:10:10 UTC" in bodies[0]
    assert "data until" not in bodies[0]  # the job has ended

    queue, same = (
        re.search(r'href="(/incidents/impact/mds1/queue/[^"]*)"', text_of(as_staff.get(page)))[1]
        for page in places(flag)
    )
    assert queue == same
    span = "start=2017-07-05T12:09Z&end=2017-07-05T12:12Z"
    for page in ("/overview/", "/servers/mds1/"):
        assert "worst queue" in words_of(as_staff.get(f"{page}?{span}"))
    export = json_of(as_staff.get(f"{queue.replace('&amp;', '&')}&format=json"))
    assert export["impact_s"] == pytest.approx(figure, rel=0.05)
    assert export["start"] == "2017-07-05T12:10:00+00:00"
    assert export["share"] == pytest.approx(0.85, abs=0.005)


def test_users_see_no_exact_figure_of_others_with_their_own(db, as_alice, as_staff):
    """Bob alone waited: an exact figure would be his."""
    flag = Flag.objects.get()

    seen = [
        figures(json_of(as_alice.get(page, {"format": "json"})))
        for page in (*places(flag), "/cases/", "/ranking/?of=job&by=impact_s&columns=impact_s")
    ]

    assert all(seen[:3])
    assert [each for found in seen for each in found if each != coarse(each)] == []
    exact = figures(json_of(as_staff.get(f"/flags/{flag.pk}/?format=json")))
    assert any(each != coarse(each) for each in exact)


def figures(found):
    """Return the figures of others' waiting in a JSON export."""
    if isinstance(found, list):
        return [each for part in found for each in figures(part)]
    if not isinstance(found, dict):
        return []
    own = [found[name] for name in found.keys() & FIGURES if isinstance(found[name], float)]
    return own + [each for part in found.values() for each in figures(part)]


def words(text):
    return " ".join(re.sub(r"<[^>]*>", " ", text).replace("&#x27;", "'").split())


def places(flag):
    return f"/cases/{flag.case_id}/", f"/flags/{flag.pk}/"
