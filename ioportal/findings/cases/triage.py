"""Triage of cases by staff. Every change by a user goes through this module.

Each case is changed in its own transaction together with its event. A change waits for a running
evaluation that has locked the case. Repeating a change has no effect, so that a form can be
submitted twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.utils import timezone

from ioportal.findings import latest_data
from ioportal.findings.cases import case_lifecycle
from ioportal.findings.models import Case, CaseEvent, Flag

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from django.contrib.auth.models import User

MAX_REASON_LENGTH = 500
MAX_COMMENT_LENGTH = 2_000
_State = Case.State
_Kind = CaseEvent.Kind


@dataclass
class Outcome:
    """The result of an action: keys of cases."""

    done: list[int] = field(default_factory=list)
    unchanged: list[int] = field(default_factory=list)
    refused: dict[int, str] = field(default_factory=dict)  # with reasons


class _RefusedError(Exception):
    """The case's state does not allow the action."""


def acknowledge(keys: Iterable[int], by: User, reason: str = "") -> Outcome:
    """Acknowledge cases."""
    text = _validated(reason, MAX_REASON_LENGTH)

    def change(case: Case) -> CaseEvent | None:
        if case.state == _State.ACKNOWLEDGED:
            return None
        _require_state(case, _State.OPEN, _State.MUTED)
        case.state, case.muted_until = _State.ACKNOWLEDGED, None
        return CaseEvent(kind=_Kind.ACKNOWLEDGED, text=text)

    return _change_each(keys, by, change)


def mute(keys: Iterable[int], by: User, until: datetime, reason: str = "") -> Outcome:
    """Mute cases until a time.

    Raises:
        ValidationError: the time is not in the future.
    """
    given = _validated(reason, MAX_REASON_LENGTH)
    if until <= timezone.now():
        raise ValidationError("The mute period must end in the future.")
    text = f"Until {timezone.localtime(until):%Y-%m-%d %H:%M}. {given}".strip()

    def change(case: Case) -> CaseEvent | None:
        if case.state == _State.MUTED and case.muted_until == until:
            return None
        _require_state(case, _State.OPEN, _State.ACKNOWLEDGED, _State.MUTED)
        case.state, case.muted_until = _State.MUTED, until
        return CaseEvent(kind=_Kind.MUTED, text=text)

    return _change_each(keys, by, change)


def resolve(keys: Iterable[int], by: User, reason: str) -> Outcome:
    """Resolve cases and describe the fix. Findings on later data open them again.

    Raises:
        ValidationError: the reason is missing.
    """
    text = _validated(reason, MAX_REASON_LENGTH)
    if not text:
        raise ValidationError("Describe the fix. It is shown with similar cases.")
    latest = latest_data.observed_until()

    def change(case: Case) -> CaseEvent | None:
        if case.state == _State.RESOLVED:
            return None
        return case_lifecycle.resolve(
            case, text, by=by.get_username(), resolved_until=max(case.until, latest)
        )

    return _change_each(keys, by, change)


def reopen(keys: Iterable[int], by: User, reason: str = "") -> Outcome:
    """Return cases to their initial state."""
    text = _validated(reason, MAX_REASON_LENGTH)

    def change(case: Case) -> CaseEvent | None:
        if case.state == _State.OPEN:
            return None
        _require_state(case, _State.ACKNOWLEDGED, _State.MUTED, _State.RESOLVED)
        has_good_data = Flag.objects.good().filter(case=case).exists()
        return case_lifecycle.reopen(case, text, has_good_data=has_good_data)

    return _change_each(keys, by, change)


def assign(keys: Iterable[int], by: User, to: User | None) -> Outcome:
    """Assign cases to a member of staff; None removes the assignment.

    Raises:
        ValidationError: the user is not active staff.
    """
    if to and not (to.is_staff and to.is_active):
        raise ValidationError("Cases can be assigned to staff only.")

    def change(case: Case) -> CaseEvent | None:
        if case.assignee == to:
            return None
        case.assignee = to
        return CaseEvent(kind=_Kind.ASSIGNED, text=f"To {to}." if to else "Unassigned.")

    return _change_each(keys, by, change)


def comment(keys: Iterable[int], by: User, comment_text: str) -> Outcome:
    """Add a comment for staff.

    Raises:
        ValidationError: the comment is empty.
    """
    text = _validated(comment_text, MAX_COMMENT_LENGTH)
    if not text:
        raise ValidationError("Enter a comment.")

    def change(case: Case) -> CaseEvent | None:
        last = case.events.last()
        identity = (_Kind.COMMENTED, by.get_username(), text)
        if last and (last.kind, last.by, last.text) == identity:
            return None
        return CaseEvent(kind=_Kind.COMMENTED, text=text)

    return _change_each(keys, by, change)


def _change_each(
    keys: Iterable[int], by: User, change: Callable[[Case], CaseEvent | None]
) -> Outcome:
    """Change each case and store the event; a change that returns None has no effect.

    Raises:
        PermissionDenied: the user is not staff.
    """
    if not by.is_staff:
        raise PermissionDenied("Only staff can triage cases.")
    outcome = Outcome()
    for key in dict.fromkeys(keys):
        with transaction.atomic():
            case = Case.objects.select_for_update(of=("self",)).filter(pk=key).first()
            if case is None:
                outcome.refused[key] = "This case does not exist."
                continue
            try:
                event = change(case)
            except _RefusedError as error:
                outcome.refused[key] = str(error)
                continue
            if event is None:
                outcome.unchanged.append(key)
                continue
            case.save()
            event.case, event.by = case, by.get_username()
            event.save()
            outcome.done.append(key)
    return outcome


def _require_state(case: Case, *states: Case.State) -> None:
    if case.state not in states:
        raise _RefusedError(_REFUSALS[_State(case.state)])


_REFUSALS = {
    _State.OPEN: "Already open.",
    _State.ACKNOWLEDGED: "Already acknowledged.",
    _State.MUTED: "The case is muted.",
    _State.RESOLVED: "The case is resolved. Reopen it first.",
    _State.SUPPRESSED: "The case is suppressed: its data quality is below good. Resolve it.",
}


def _validated(text: str, max_length: int) -> str:
    stripped = text.replace("\x00", "\ufffd").strip()
    if len(stripped) > max_length:
        raise ValidationError(f"Longer than {max_length:,} characters.")
    return stripped
