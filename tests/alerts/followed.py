"""A mail about a storm, and what its owner's jobs did afterwards."""

from datetime import timedelta

from ioportal.alerts import planning
from ioportal.alerts.delivery import outbox
from ioportal.alerts.models import Notification
from tests import loading, untraced
from tests.logs import at
from tests.repeats import WEEK_AFTER, WEEK_BEFORE, repeat_jobs

WEEK = timedelta(days=7)
CALM, STORMS = 3 * untraced.CALM_REQUESTS, 3 * untraced.STORM_REQUESTS  # a minute, of three jobs
AFTER_THE_STORM = at("12:09:30")
THANKED = AFTER_THE_STORM + timedelta(days=6)


def mail(logs, requests, *, weeks=True):
    """Send a mail as if just after the storm; then load later jobs with requests a minute.

    With `weeks`, the storm's and later jobs also ran on the days of the week before and after.
    """
    planning.plan()
    outbox.send_due(10)
    Notification.objects.update(finished_at=AFTER_THE_STORM)
    untraced.ingest_later(logs, requests)
    loading.evaluate()
    if weeks:
        repeat_jobs([untraced.STORM], WEEK_BEFORE, daily=2)
        repeat_jobs(untraced.LATER, WEEK_AFTER)
    return Notification.objects.get()
