"""Previews of mails: nothing is stored or sent."""

from django.core.cache import cache

from ioportal.alerts.models import Notification
from ioportal.flags.models import Flag


def test_a_case_is_previewed(as_staff, storm):
    cache.clear()

    page = as_staff.get(f"/mails/preview/?case={storm.pk}").content.decode()

    assert "Hello Alice Ng," in page
    assert "Please stop or throttle this job. Before you run it again, reduce its " in page
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
