"""Stores why cases are mailed about or not: a row for each change of the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ioportal.alerts.models import CaseDecision
from ioportal.core.visible_text import visible

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ioportal.alerts.decide import Verdict

_FOLLOW_UP = "Follow-up: "
_CHARACTERS = 300  # in the database


def store(decisions: Mapping[int, tuple[Verdict, str]], *, are_follow_ups: bool = False) -> None:
    """Store verdicts and reasons by case, those that differ from the latest of their kind."""
    prefix = _FOLLOW_UP if are_follow_ups else ""
    by_case = {
        case: (verdict, visible(f"{prefix}{reason}")[:_CHARACTERS])
        for case, (verdict, reason) in decisions.items()
    }
    rows = CaseDecision.objects.filter(case__in=by_case)
    of_kind = rows.filter if are_follow_ups else rows.exclude
    latest = of_kind(reason__startswith=_FOLLOW_UP).order_by("case_id", "-pk").distinct("case_id")
    stored = {row.case_id: (row.verdict, row.reason) for row in latest}
    CaseDecision.objects.bulk_create(
        CaseDecision(case_id=case, verdict=verdict, reason=reason)
        for case, (verdict, reason) in by_case.items()
        if stored.get(case) != (verdict, reason)
    )
