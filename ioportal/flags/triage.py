"""What people do about flags. Every change by a person goes through here.

Each flag is changed in a transaction of its own, together with the event that tells of it: the
judge, who may hold some of them, is waited for, never locked out. What somebody has done already
is not done again, so that a form may be sent twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.utils import timezone

from ioportal.flags import locks
from ioportal.flags.models import Flag, FlagEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from django.contrib.auth.models import User

LONGEST_REASON = 500
LONGEST_COMMENT = 2_000
_State = Flag.State
_What = FlagEvent.What
_CHANGING = (
    "state",
    "muted_until",
    "assignee",
    "why_resolved",
    "resolved_by",
    "resolved_at",
)


@dataclass
class Outcome:
    """What came of an action: keys of flags."""

    done: list[int] = field(default_factory=list)
    so_already: list[int] = field(default_factory=list)
    refused: dict[int, str] = field(default_factory=dict)  # and why


class _RefusedError(Exception):
    """A flag is not, or no longer, in a state in which something can be done about it."""


def acknowledge(flags: Iterable[int], by: User, why: str = "") -> Outcome:
    """Say that somebody looks at flags."""
    words = _words(why, LONGEST_REASON)

    def change(flag: Flag) -> FlagEvent | None:
        if flag.state == _State.ACKNOWLEDGED:
            return None
        _demand(flag, _State.OPEN, _State.MUTED)
        flag.state, flag.muted_until = _State.ACKNOWLEDGED, None
        return FlagEvent(what=_What.ACKNOWLEDGED, words=words)

    return _each(flags, by, change)


def mute(flags: Iterable[int], by: User, until: datetime, why: str = "") -> Outcome:
    """Take flags out of the way until a moment.

    Raises:
        ValidationError: it is not to come.
    """
    words = _words(why, LONGEST_REASON)
    if until <= timezone.now():
        raise ValidationError("A muting ends in the future.")
    told = f"Until {timezone.localtime(until):%Y-%m-%d %H:%M}. {words}".strip()

    def change(flag: Flag) -> FlagEvent | None:
        if flag.state == _State.MUTED and flag.muted_until == until:
            return None
        _demand(flag, _State.OPEN, _State.ACKNOWLEDGED, _State.MUTED)
        flag.state, flag.muted_until = _State.MUTED, until
        return FlagEvent(what=_What.MUTED, words=told)

    return _each(flags, by, change)


def resolve(flags: Iterable[int], by: User, why: str) -> Outcome:
    """Say that flags are dealt with, and how: who meets the same again reads it.

    Raises:
        ValidationError: there is no reason.
    """
    words = _words(why, LONGEST_REASON)
    if not words:
        raise ValidationError("Say what solved it: who meets the same again reads it.")

    def change(flag: Flag) -> FlagEvent | None:
        if flag.state == _State.RESOLVED:
            return None
        flag.state, flag.muted_until = _State.RESOLVED, None
        flag.why_resolved, flag.resolved_by = words, by.get_username()
        flag.resolved_at = timezone.now()
        return FlagEvent(what=_What.RESOLVED, words=words, value=flag.value)

    return _each(flags, by, change)


def reopen(flags: Iterable[int], by: User, why: str = "") -> Outcome:
    """Put flags back among those that are to be triaged."""
    words = _words(why, LONGEST_REASON)

    def change(flag: Flag) -> FlagEvent | None:
        if flag.state == _State.OPEN:
            return None
        _demand(flag, _State.ACKNOWLEDGED, _State.MUTED, _State.RESOLVED)
        if flag.state == _State.RESOLVED:
            _demand_only(flag)
        flag.state, flag.muted_until = flag.state_of_opened, None
        flag.why_resolved, flag.resolved_by, flag.resolved_at = "", "", None
        return FlagEvent(what=_What.REOPENED, words=words)

    return _each(flags, by, change, opens=True)


def assign(flags: Iterable[int], by: User, to: User | None) -> Outcome:
    """Say who is to look at flags; None: nobody.

    Raises:
        ValidationError: they cannot see them.
    """
    if to and not (to.is_staff and to.is_active):
        raise ValidationError("Only staff can be assigned a flag.")

    def change(flag: Flag) -> FlagEvent | None:
        if flag.assignee == to:
            return None
        flag.assignee = to
        return FlagEvent(what=_What.ASSIGNED, words=f"To {to or 'nobody'}.")

    return _each(flags, by, change)


def comment(flags: Iterable[int], by: User, words: str) -> Outcome:
    """Write something down about flags, for staff.

    Raises:
        ValidationError: there is nothing to write down.
    """
    told = _words(words, LONGEST_COMMENT)
    if not told:
        raise ValidationError("A comment has words.")

    def change(flag: Flag) -> FlagEvent | None:
        last = flag.events.last()
        is_sent_twice = last and (last.what, last.by, last.words) == (
            _What.COMMENTED,
            by.get_username(),
            told,
        )
        return None if is_sent_twice else FlagEvent(what=_What.COMMENTED, words=told)

    return _each(flags, by, change)


def _each(
    keys: Iterable[int],
    by: User,
    change: Callable[[Flag], FlagEvent | None],
    *,
    opens: bool = False,
) -> Outcome:
    """Change each flag, and tell of it; None of a change: there is nothing to do.

    Raises:
        PermissionDenied: they are not of the staff.
    """
    if not by.is_staff:
        raise PermissionDenied("Flags are triaged by staff.")
    outcome = Outcome()
    for key in dict.fromkeys(keys):
        with transaction.atomic():
            if opens:
                locks.opening()
            flag = Flag.objects.select_for_update(of=("self",)).filter(pk=key).first()
            if flag is None:
                outcome.refused[key] = "There is no such flag."
                continue
            try:
                event = change(flag)
            except _RefusedError as why:
                outcome.refused[key] = str(why)
                continue
            if event is None:
                outcome.so_already.append(key)
                continue
            # When its evidence changed is the judge's to say; a flag that is opened again rests
            # from now on.
            flag.save(update_fields=[*_CHANGING, "changed_at"] if opens else _CHANGING)
            event.flag, event.by = flag, by.get_username()
            event.save()
            outcome.done.append(key)
    return outcome


def _demand(flag: Flag, *states: Flag.State) -> None:
    if flag.state not in states:
        raise _RefusedError(_WHY_NOT[_State(flag.state)])


_WHY_NOT = {
    _State.OPEN: "It is open already.",
    _State.ACKNOWLEDGED: "It is acknowledged already.",
    _State.MUTED: "It is muted.",
    _State.RESOLVED: "It is resolved: reopen it first.",
    _State.WITHHELD: "It is withheld: nobody is blamed by data that are not good. Resolve it.",
}


def _demand_only(flag: Flag) -> None:
    """Demand that the same finding has no other flag that is not resolved."""
    same = Flag.objects.unresolved().of_same(flag.rule, flag.subject_kind, flag.filesystem_id)
    other = same.filter(subject=flag.subject).first()
    if other:
        raise _RefusedError(f"Flag {other.pk} tells of the same, and is {other.state}.")


def _words(text: str, longest: int) -> str:
    words = text.replace("\x00", "\ufffd").strip()
    if len(words) > longest:
        raise ValidationError(f"That is longer than {longest:,} characters.")
    return words
