"""Mails about a case that joins another case: they are then about the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.dispatch import receiver

from ioportal.alerts.models import CaseDecision, NotificationCase
from ioportal.findings.signals import case_joined

if TYPE_CHECKING:
    from ioportal.findings.models import Case


@receiver(case_joined)
def move_mails(emptied: Case, case: Case, **_: Any) -> None:
    """Move the mails and decisions about a case; a mail about both is about one."""
    about_both = NotificationCase.objects.filter(case=case).values("notification")
    mails = NotificationCase.objects.filter(case=emptied)
    mails.exclude(notification__in=list(about_both.values_list("notification", flat=True))).update(
        case=case
    )
    CaseDecision.objects.filter(case=emptied).update(case=case)
