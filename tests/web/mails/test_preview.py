"""Previews of mails, which store and send nothing, and drafts that staff ask for."""

import re

import pytest
from django.core.cache import cache
from django.utils import timezone

from ioportal.alerts import planning
from ioportal.alerts.models import Notification
from ioportal.findings.models import Case, Flag
from ioportal.site.models import Server, UserAccount
from tests.logs import at
from tests.web.reading import words_of

RESOLVED = {"state": Case.State.RESOLVED, "resolution": "Fixed.", "resolved_at": at("14:00")}


def test_a_case_is_previewed(as_staff, storm):
    cache.clear()
    Server.objects.update(capacity_per_s=50)

    page = words_of(as_staff.get(f"/mails/preview/?case={storm.pk}"))

    assert "Hello Alice Ng," in page
    assert "Before you run this job again, please reduce its metadata operations from " in page
    html = as_staff.get(f"/mails/preview/html/?case={storm.pk}").content.decode()
    assert 'src="data:image/png;base64,' in html
    assert not Notification.objects.exists()


def test_one_flag_is_previewed(as_staff, storm):
    flag = Flag.objects.filter(case=storm).first()

    page = as_staff.get(f"/mails/preview/?flag={flag.pk}").content.decode()

    assert f"job {flag.job.display_id}: " in page


def test_a_site_replaces_the_text(as_staff, storm, settings, tmp_path):
    cache.clear()
    (tmp_path / "alerts").mkdir()
    (tmp_path / "alerts/mail.txt").write_text("Sehr geehrte/r {{ name }},")
    [engine] = settings.TEMPLATES
    settings.TEMPLATES = [{**engine, "DIRS": [tmp_path, *engine["DIRS"]]}]

    page = as_staff.get(f"/mails/preview/?case={storm.pk}").content.decode()

    assert "Sehr geehrte/r Alice Ng," in page


def test_there_is_no_preview_without_evidence(as_staff, storm):
    for query in ("", "case=0", "flag=0", "case=x", "flag=-1", "case=99999999999999999999"):
        assert as_staff.get(f"/mails/preview/?{query}").status_code == 404


def test_staff_have_a_draft_written_that_would_be_withheld(as_staff, storm):
    Flag.objects.update(opened_at=timezone.now())  # history that was loaded later
    withheld = "Found in historical data that was loaded later."
    cache.clear()
    assert f"Not sent: {withheld}" in words_of(as_staff.get(f"/mails/preview/?case={storm.pk}"))

    for _ in range(2):
        page = words_of(as_staff.post(f"/cases/{storm.pk}/draft/", follow=True))

    draft = Notification.objects.get()
    assert (draft.state, draft.reason) == (Notification.State.DRAFT, "Written by sam.")
    assert "Hello Alice Ng" in draft.text
    assert "Draft created." in page
    assert "It would not be sent automatically" in page


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        pytest.param(
            lambda: Case.objects.update(state=Case.State.SUPPRESSED),
            "Its data quality is not good.",
            id="poor data",
        ),
        pytest.param(
            lambda: (
                Case.objects.update(**RESOLVED),
                Flag.objects.update(suppression_reasons=["Contradicted."]),
            ),
            "It has no finding on good data that still applies.",
            id="contradicted ids",
        ),
        pytest.param(
            lambda: UserAccount.objects.update(email=""), "alice has no mail address.", id="address"
        ),
    ],
)
def test_no_draft_is_written_on_bad_data_or_without_an_address(as_staff, storm, spoil, reason):
    spoil()

    page = words_of(as_staff.post(f"/cases/{storm.pk}/draft/", follow=True))

    assert f"No draft was created. {reason}" in page
    assert not Notification.objects.exists()


def test_a_notice_and_a_resolved_case_get_no_mail(as_staff, storm):
    Case.objects.update(severity=Flag.Severity.NOTICE)
    assert "No mail: the case is a notice" in words_of(as_staff.get(f"/cases/{storm.pk}/"))

    Case.objects.update(**RESOLVED)
    assert "No mail: the case is resolved." in words_of(as_staff.get(f"/cases/{storm.pk}/"))


def test_mail_case_and_flag_have_the_same_sentences(storm, automatic, as_staff):
    planning.plan()
    mail = " ".join(Notification.objects.get().text.split())

    waited = (
        r"have waited about [\d,]+ s \([\w ]+\) less: this is their extra wait "
        r"\(estimated, [\d,]+ s to [\d,]+ s: within a factor of 4\)\."
    )
    [sentences] = re.findall(
        r"90% of the work while the metadata server mds1 was slow, 2017-07-05 12:00:00 to "
        rf"12:03:00 UTC, was from job 100\. Without it, the requests of other users would {waited}",
        mail,
    )
    for address in (f"/cases/{storm.pk}/", f"/flags/{storm.flags.get().pk}/"):
        page = words_of(as_staff.get(address))
        assert page.count(sentences) == 2  # with the text of a ticket
