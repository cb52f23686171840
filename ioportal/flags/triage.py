"""Triage of flags by staff. Every change by a user goes through this module.

Each flag is changed in its own transaction together with its event. A change waits for a running
evaluation that has locked the flag. Repeating a change has no effect, so that a form can be
submitted twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.utils import timezone

from ioportal.flags.models import Flag, FlagEvent
from ioportal.postgres.advisory_locks import Lock, hold

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from django.contrib.auth.models import User

MAX_REASON_LENGTH = 500
MAX_COMMENT_LENGTH = 2_000
_State = Flag.State
_Kind = FlagEvent.Kind
_UPDATED_FIELDS = (
    "state",
    "muted_until",
    "assignee",
    "resolution",
    "resolved_by",
    "resolved_at",
)


@dataclass
class Outcome:
    """The result of an action: keys of flags."""

    done: list[int] = field(default_factory=list)
    unchanged: list[int] = field(default_factory=list)
    refused: dict[int, str] = field(default_factory=dict)  # with reasons


class _RefusedError(Exception):
    """The flag's state does not allow the action."""


def acknowledge(flags: Iterable[int], by: User, reason: str = "") -> Outcome:
    """Acknowledge flags."""
    text = _validated(reason, MAX_REASON_LENGTH)

    def change(flag: Flag) -> FlagEvent | None:
        if flag.state == _State.ACKNOWLEDGED:
            return None
        _require_state(flag, _State.OPEN, _State.MUTED)
        flag.state, flag.muted_until = _State.ACKNOWLEDGED, None
        return FlagEvent(kind=_Kind.ACKNOWLEDGED, text=text)

    return _change_each(flags, by, change)


def mute(flags: Iterable[int], by: User, until: datetime, reason: str = "") -> Outcome:
    """Mute flags until a time.

    Raises:
        ValidationError: the time is not in the future.
    """
    given = _validated(reason, MAX_REASON_LENGTH)
    if until <= timezone.now():
        raise ValidationError("The mute period must end in the future.")
    text = f"Until {timezone.localtime(until):%Y-%m-%d %H:%M}. {given}".strip()

    def change(flag: Flag) -> FlagEvent | None:
        if flag.state == _State.MUTED and flag.muted_until == until:
            return None
        _require_state(flag, _State.OPEN, _State.ACKNOWLEDGED, _State.MUTED)
        flag.state, flag.muted_until = _State.MUTED, until
        return FlagEvent(kind=_Kind.MUTED, text=text)

    return _change_each(flags, by, change)


def resolve(flags: Iterable[int], by: User, reason: str) -> Outcome:
    """Resolve flags and describe the fix.

    Raises:
        ValidationError: the reason is missing.
    """
    text = _validated(reason, MAX_REASON_LENGTH)
    if not text:
        raise ValidationError("Describe the fix. It is shown with similar flags.")

    def change(flag: Flag) -> FlagEvent | None:
        if flag.state == _State.RESOLVED:
            return None
        flag.state, flag.muted_until = _State.RESOLVED, None
        flag.resolution, flag.resolved_by = text, by.get_username()
        flag.resolved_at = timezone.now()
        return FlagEvent(kind=_Kind.RESOLVED, text=text, value=flag.value)

    return _change_each(flags, by, change)


def reopen(flags: Iterable[int], by: User, reason: str = "") -> Outcome:
    """Return flags to their initial state."""
    text = _validated(reason, MAX_REASON_LENGTH)

    def change(flag: Flag) -> FlagEvent | None:
        if flag.state == _State.OPEN:
            return None
        _require_state(flag, _State.ACKNOWLEDGED, _State.MUTED, _State.RESOLVED)
        if flag.state == _State.RESOLVED:
            _require_no_other(flag)
        flag.state, flag.muted_until = flag.initial_state, None
        flag.resolution, flag.resolved_by, flag.resolved_at = "", "", None
        return FlagEvent(kind=_Kind.REOPENED, text=text)

    return _change_each(flags, by, change, opens=True)


def assign(flags: Iterable[int], by: User, to: User | None) -> Outcome:
    """Assign flags to a member of staff; None removes the assignment.

    Raises:
        ValidationError: the user is not active staff.
    """
    if to and not (to.is_staff and to.is_active):
        raise ValidationError("Flags can be assigned to staff only.")

    def change(flag: Flag) -> FlagEvent | None:
        if flag.assignee == to:
            return None
        flag.assignee = to
        return FlagEvent(kind=_Kind.ASSIGNED, text=f"To {to}." if to else "Unassigned.")

    return _change_each(flags, by, change)


def comment(flags: Iterable[int], by: User, comment_text: str) -> Outcome:
    """Add a comment for staff.

    Raises:
        ValidationError: the comment is empty.
    """
    text = _validated(comment_text, MAX_COMMENT_LENGTH)
    if not text:
        raise ValidationError("Enter a comment.")

    def change(flag: Flag) -> FlagEvent | None:
        last = flag.events.last()
        identity = (_Kind.COMMENTED, by.get_username(), text)
        if last and (last.kind, last.by, last.text) == identity:
            return None
        return FlagEvent(kind=_Kind.COMMENTED, text=text)

    return _change_each(flags, by, change)


def _change_each(
    keys: Iterable[int],
    by: User,
    change: Callable[[Flag], FlagEvent | None],
    *,
    opens: bool = False,
) -> Outcome:
    """Change each flag and store the event; a change that returns None has no effect.

    Raises:
        PermissionDenied: the user is not staff.
    """
    if not by.is_staff:
        raise PermissionDenied("Only staff can triage flags.")
    outcome = Outcome()
    for key in dict.fromkeys(keys):
        with transaction.atomic():
            if opens:
                hold(Lock.FLAG_CREATION)
            flag = Flag.objects.select_for_update(of=("self",)).filter(pk=key).first()
            if flag is None:
                outcome.refused[key] = "This flag does not exist."
                continue
            try:
                event = change(flag)
            except _RefusedError as error:
                outcome.refused[key] = str(error)
                continue
            if event is None:
                outcome.unchanged.append(key)
                continue
            # Only evaluation sets `changed_at`, except that a reopened flag must not expire soon.
            flag.save(update_fields=[*_UPDATED_FIELDS, "changed_at"] if opens else _UPDATED_FIELDS)
            event.flag, event.by = flag, by.get_username()
            event.save()
            outcome.done.append(key)
    return outcome


def _require_state(flag: Flag, *states: Flag.State) -> None:
    if flag.state not in states:
        raise _RefusedError(_REFUSALS[_State(flag.state)])


_REFUSALS = {
    _State.OPEN: "Already open.",
    _State.ACKNOWLEDGED: "Already acknowledged.",
    _State.MUTED: "The flag is muted.",
    _State.RESOLVED: "The flag is resolved. Reopen it first.",
    _State.SUPPRESSED: "The flag is suppressed: its data quality is below good. Resolve it.",
}


def _require_no_other(flag: Flag) -> None:
    """Refuse to reopen a flag if the rule has another unresolved flag of its subject."""
    same_rule = Flag.objects.of_rule(flag.rule, flag.subject_kind, flag.filesystem_id)
    other = same_rule.unresolved().filter(subject=flag.subject).first()
    if other:
        raise _RefusedError(f"Flag {other.pk} has the same finding and is {other.state}.")


def _validated(text: str, max_length: int) -> str:
    stripped = text.replace("\x00", "\ufffd").strip()
    if len(stripped) > max_length:
        raise ValidationError(f"Longer than {max_length:,} characters.")
    return stripped
