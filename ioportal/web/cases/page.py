"""The page of one case: figures, flags, past cases of its rule, and events."""

from __future__ import annotations

from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from django.core.paginator import Paginator
from django.db.models import Case as Conditional
from django.db.models import Q, Value, When
from django.shortcuts import get_object_or_404

from ioportal.alerts.case_mail_texts import topics
from ioportal.alerts.models import Answer, CaseDecision, Notification, NotificationCase
from ioportal.changes import past_effects
from ioportal.changes.models import Mitigation
from ioportal.findings import latest_data
from ioportal.findings.cases.case_texts import (
    current_impacts,
    facts,
    is_simulated,
    public_events,
    summaries,
    with_places,
)
from ioportal.findings.flags import flag_texts
from ioportal.findings.models import Case, CaseEvent, Flag
from ioportal.web.cases.flags_by_week import FlagsByWeek
from ioportal.web.mails.answers import AnswerForm

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from django.contrib.auth.models import User
    from django.core.paginator import Page
    from django.http import QueryDict

    from ioportal.alerts.case_mail_texts import Topic
    from ioportal.changes.past_effects import PastEffect
    from ioportal.findings.cases.case_texts import CaseSummary
    from ioportal.findings.flags.flag_texts import FlagSummary
    from ioportal.findings.models import FlagQuerySet
    from ioportal.jobs.analysis.remedies import Remedy

PER_PAGE = 40
_LISTED_CASES = 10
_ROWS_AT_ONCE = 2_000


class CasePage:
    """A case and its flags, as far as `user` may see them."""

    def __init__(self, user: User, pk: int, query: QueryDict) -> None:
        self._user = user
        self._query = query
        self.case: Case = get_object_or_404(with_places(Case.objects.visible_to(user)), pk=pk)

    @cached_property
    def summary(self) -> CaseSummary:
        """Its subject, figures and current impact."""
        impacts = current_impacts(self._user, latest_data.impact())
        [summary] = summaries([self.case], self._user, impacts)
        return summary

    @property
    def simulated(self) -> bool:
        """Whether it is about simulated data."""
        return is_simulated(self.case)

    @property
    def _flags(self) -> FlagQuerySet:
        """Its flags: current ones first, then by latest data."""
        visible = Flag.objects.visible_to(self._user).filter(case=self.case)
        ended_last = Conditional(When(ended_at=None, then=Value(0)), default=Value(1))
        return flag_texts.with_subjects(visible).order_by(ended_last, "-until", "-pk")

    @cached_property
    def page(self) -> Page[Flag]:
        """The page of flags in the URL."""
        return Paginator(self._flags, PER_PAGE).get_page(self._query.get("page"))

    @cached_property
    def rows(self) -> list[FlagSummary]:
        """The flags of the page."""
        return flag_texts.summaries(self.page.object_list, self._user)

    def export_rows(self) -> Iterator[list[Any]]:
        """Yield the values of `flag_texts.columns` for each flag."""
        names = flag_texts.columns(self._user)
        rows = self._flags.iterator(_ROWS_AT_ONCE)
        while batch := list(islice(rows, PER_PAGE)):
            for row in flag_texts.summaries(batch, self._user):
                yield [flag_texts.fact(row, name) for name in names]

    @cached_property
    def mails(self) -> list[NotificationCase]:
        """The mails about it, the latest first, with their effects."""
        mails = Notification.objects.visible_to(self._user)
        about = NotificationCase.objects.filter(case=self.case, notification__in=mails)
        return list(about.select_related("notification").order_by("-pk")[:_LISTED_CASES])

    @property
    def is_own(self) -> bool:
        """Whether the reader is its owner, who may answer."""
        return bool(self.case.owner) and self.case.owner == self._user.get_username()

    @cached_property
    def answer_form(self) -> AnswerForm:
        """The form of its owner."""
        return AnswerForm()

    @cached_property
    def request_mail(self) -> NotificationCase | None:
        """The latest mail with a request, which is of its date; None: nothing was asked."""
        return next((mail for mail in self.mails if mail.request), None)

    @cached_property
    def request(self) -> str:
        """What its owner is asked to do, as in the latest mail; "": see `_topic`."""
        if self.request_mail and self._is_for_reader:
            return self.request_mail.request
        return self._topic.request if self._topic else ""

    @property
    def _is_for_reader(self) -> bool:
        """Whether the reader may see what its owner is asked: the owner and staff may."""
        return self.is_own or self._user.is_staff

    @property
    def remedies(self) -> list[Remedy]:
        """What would help most, as mails to its owner say."""
        return self._topic.remedies if self._topic else []

    @cached_property
    def _topic(self) -> Topic | None:
        """The case as a mail to its owner presents it; None: nothing on good data, or others'."""
        if not (self.case.owner and self._is_for_reader):
            return None
        return next(iter(topics([self.case.pk], self.case.owner)), None)

    @cached_property
    def mail_decision(self) -> CaseDecision | None:
        """The latest decision whether to mail about it."""
        return CaseDecision.objects.filter(case=self.case).first()

    @cached_property
    def flags_by_week(self) -> FlagsByWeek | None:
        """The chart of its flags on good data; None: there are none."""
        visible = Flag.objects.visible_to(self._user).counted()
        return FlagsByWeek.of(self.case, visible.filter(case=self.case))

    @cached_property
    def past_cases(self) -> list[CaseSummary]:
        """Resolved cases of the same rule.

        Those resolved by staff come first, and of these the ones of the same subject or
        application.
        """
        case = self.case
        same = Q(subject_kind=case.subject_kind, subject=case.subject)
        if case.application:
            same |= Q(application=case.application)
        past = (
            Case.objects.visible_to(self._user)
            .filter(rule=case.rule, state=Case.State.RESOLVED)
            .exclude(pk=case.pk)
            .order_by(
                Conditional(When(resolved_by="", then=Value(1)), default=Value(0)),
                Conditional(When(same, then=Value(0)), default=Value(1)),
                "-until",
                "-pk",
            )
        )
        return summaries(with_places(past)[:_LISTED_CASES], self._user)

    @property
    def events(self) -> Iterable[CaseEvent]:
        """Its events in order; others than staff see no triage, but their own answers."""
        return self.case.events.filter(public_events(self._user)).order_by("pk")

    @cached_property
    def mitigations(self) -> list[Mitigation]:
        """The mitigations that were logged from it, for staff."""
        logged = Mitigation.objects.visible_to(self._user).filter(case_key=self.case.pk)
        return list(logged) if self._user.is_staff else []

    @cached_property
    def _past(self) -> list[tuple[Mitigation, PastEffect]]:
        return past_effects.for_case(self.case)

    @property
    def past_effects(self) -> list[tuple[Mitigation, PastEffect]]:
        """Measured effects of past mitigations of the same kind of finding, or of its owner."""
        return [(each, effect) for each, effect in self._past if effect.measured_at]

    @property
    def unmeasured(self) -> int:
        """Number of such mitigations that are not measured yet."""
        return len(self._past) - len(self.past_effects)

    @cached_property
    def fixes(self) -> set[int]:
        """The events that offer to log a mitigation: answers of the owner that it is fixed."""
        if not self._user.is_staff or self.mitigations:
            return set()
        answered = Q(kind=CaseEvent.Kind.ANSWERED, text__startswith=Answer.Kind.FIXED.label)
        return set(self.case.events.filter(answered).values_list("pk", flat=True))

    @property
    def facts(self) -> dict[str, Any]:
        """The case as one JSON object."""
        return {
            **facts(self.summary, self._user),
            "events": [
                {"at": event.at, "kind": event.kind, "by": event.by, "text": event.text}
                for event in self.events
            ],
        }
