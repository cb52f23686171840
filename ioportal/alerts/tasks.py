"""Celery tasks of mails, from addresses and decisions to delivery and bounces."""

from celery import shared_task
from django.db import OperationalError

from ioportal.alerts import channel_messages, copies, follow_ups, own_mails, planning, retention
from ioportal.alerts.delivery import bounces, outbox
from ioportal.alerts.digests import schedule
from ioportal.changes import past_effects
from ioportal.core.stages import MAIL_PLANNING, MAILS
from ioportal.findings.models import Case
from ioportal.site import address_command
from ioportal.site.models import Project
from ioportal.telemetry.stage_runs import drain, drain_alone, failures_recorded

_MEASURED_AT_ONCE = 5  # mitigations: each takes a second or two
OUTWARD_LIMIT_S = 300  # of tasks that connect to other servers: above their own time limits


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True)
def plan_mails() -> None:
    """Write the mails that are due."""
    with failures_recorded(MAIL_PLANNING):
        planning.plan()


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True)
def notify_channels() -> None:
    """Write the notifications of channels that are due."""
    with failures_recorded("channel planning"):
        channel_messages.plan()


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True)
def follow_up() -> None:
    """Store the effects of mails, and write the follow-ups that are due."""
    with failures_recorded("follow-ups"):
        follow_ups.follow_up()


@shared_task(soft_time_limit=OUTWARD_LIMIT_S)
def send_mails() -> bool:
    """Send waiting mails; return whether some are left. One worker sends at a time."""
    return drain_alone(MAILS, outbox.send_due, prepare=outbox.recover)


@shared_task(soft_time_limit=OUTWARD_LIMIT_S)
def look_up_addresses() -> None:
    """Look up missing mail addresses of owners of cases and of contacts, one worker at a time.

    Planning holds a lock: it must not wait for look-ups.
    """
    drain_alone("addresses", lambda _: address_command.look_up_next(_without_address()))


def _without_address() -> set[str]:
    owners = Case.objects.to_triage().exclude(owner="").values_list("owner", flat=True)
    contacts = Project.objects.filter(email="", account__isnull=False)
    return {*owners, *contacts.values_list("account__name", flat=True)}


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True)
def write_digests() -> None:
    """Write the digests of today that are due."""
    with failures_recorded("digests"):
        schedule.write_due()


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True)
def copy_mails() -> None:
    """Write the copies of sent mails."""
    with failures_recorded("copies of mails"):
        copies.write()


@shared_task(soft_time_limit=OUTWARD_LIMIT_S)
def read_bounces() -> bool:
    """Apply the bounces in the mailbox; return whether some are left."""
    return drain_alone("bounces", bounces.read_mailbox)


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True)
def write_own_mails() -> None:
    """Write the mails that users asked for about their own jobs."""
    with failures_recorded("mails on request"):
        own_mails.write()


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True)
def measure_mitigations() -> None:
    """Measure some mitigations, whose effects mails and pages of cases quote."""
    with failures_recorded("effects of mitigations"):
        past_effects.measure_next(_MEASURED_AT_ONCE)


@shared_task
def retain_mails() -> None:
    """Remove old texts of mails and old decisions."""
    with failures_recorded("mail retention"):
        drain(retention.remove_old)
