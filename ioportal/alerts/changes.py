"""Changes of a case's jobs after a mail: answers "It is fixed", and mitigations."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.contrib.auth import get_user_model
from django.db.models import F
from django.http import QueryDict

from ioportal.alerts import answers
from ioportal.changes.analysis.before_after import Event, NoPeriods, periods
from ioportal.changes.before_after import Surroundings
from ioportal.findings.models import CaseEvent

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from ioportal.changes.analysis.before_after import Period, Periods
    from ioportal.changes.before_after import Neighbour
    from ioportal.findings.models import Case

_MAIL = "our mail"
_ANSWER = f'your answer "{answers.FIXED.rstrip(".")}"'
_HIDDEN = "a change by staff"


@dataclass(frozen=True)
class Changes:
    """What may have changed the jobs of a case.

    Args:
        candidates: the mail, the owner's answers and the active mitigations of these jobs since
            then, the latest first.
        others: other mitigations and upgrades of servers, at any time.
    """

    candidates: tuple[Event, ...]
    others: tuple[Event, ...]

    def periods(self, change: Event, extent: Period) -> Periods | NoPeriods:
        """Return the periods before and after one of the candidates.

        Args:
            change: the candidate.
            extent: time of the jobs.
        """
        neighbours = [*(each for each in self.candidates if each != change), *self.others]
        return periods(change, extent, neighbours)


class Log:
    """Answers and mitigations, loaded once for some cases."""

    def __init__(self, cases: Collection[Case]) -> None:
        # Mails name public mitigations only; the others have their effects, too.
        self._surroundings = Surroundings(get_user_model()(is_staff=True))
        self._answers = defaultdict(list)
        fixed = CaseEvent.objects.filter(
            kind=CaseEvent.Kind.ANSWERED,
            by=F("case__owner"),
            text__startswith=answers.FIXED,
            case__in={case.pk for case in cases},
        )
        for case, at in fixed.values_list("case", "at"):
            self._answers[case].append(Event(at, at, _ANSWER))

    def changes(self, case: Case, mailed_at: datetime, now: datetime) -> Changes:
        """Return what may have changed the jobs of a case after a mail about it."""
        neighbours = list(self._surroundings.neighbours(_scope(case), None))
        events = {self._event(each): each for each in neighbours}
        possible = [
            *self._answers[case.pk],
            *(event for event, each in events.items() if self._is_active(each, now)),
        ]
        since = [each for each in possible if mailed_at < each.start and each.end <= now]
        candidates = [Event(mailed_at, mailed_at, _MAIL), *since]
        candidates.sort(key=lambda each: each.end, reverse=True)
        return Changes(tuple(candidates), tuple(e for e in events if e not in candidates))

    def _event(self, neighbour: Neighbour) -> Event:
        mitigation = self._surroundings.mitigations.get(neighbour.key or 0)
        event = neighbour.event
        is_quotable = mitigation is None or mitigation.is_public
        return event if is_quotable else Event(event.start, event.end, _HIDDEN)

    def _is_active(self, neighbour: Neighbour, now: datetime) -> bool:
        """Return whether a mitigation of a user's jobs still applies at a time."""
        mitigation = self._surroundings.mitigations.get(neighbour.key or 0)
        if mitigation is None or "user" not in QueryDict(mitigation.scope):
            return False
        return mitigation.reverted_at is None or mitigation.reverted_at > now


def _scope(case: Case) -> str:
    names = {"user": case.owner, "name": case.application}
    return urlencode({name: value for name, value in names.items() if value})
