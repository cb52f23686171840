"""Decides which cases to mail about at a time, and why others are not: pure, without Django.

Mails follow Alertmanager's model. Cases are grouped by recipient and filesystem. A group waits for
further cases, is mailed at intervals, and a case is repeated if it grows. Every case gets a
decision with a reason, whether it is mailed or not.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import date, datetime
    from zoneinfo import ZoneInfo

_SATURDAY = 5
_DRAINS_WITHIN = timedelta(minutes=10)  # a queue: its mail waits for the whole harm


class Mode(StrEnum):
    """What happens with mails about a rule."""

    OFF = "off"
    APPROVAL = "approval"  # a member of staff sends the draft
    AUTOMATIC = "automatic"


class Verdict(StrEnum):
    """What happens with a case now."""

    MAIL = "mail"
    LATER = "later"
    WITHHELD = "withheld"


@dataclass(frozen=True)
class Policy:
    """When mails are sent.

    Args:
        modes: by rule; `default_mode` applies to others.
        default_mode: of rules without a mode.
        wait: time for further cases of a group, from its first.
        interval: minimum time between mails to a group.
        repeat: minimum time between mails about the same case, if it has grown.
        growth: times the value in the last mail about a case.
        quiet_from: hour of the day, in `zone`, from which no mail is sent.
        quiet_until: hour until which no mail is sent; equal to `quiet_from`: no quiet hours.
        on_weekends: whether mails are sent on Saturdays and Sundays.
        holidays: days without mails.
        zone: time zone of hours and days.
        daily_cap: mails to a recipient within 24 hours.
        hourly_brake: mails to all recipients within an hour; beyond, mails are held.
        excluded: users who never get mails.
        fresh: maximum age of data when it was evaluated: older data is history.
        follow_up_after: time that a user has for changes before a reminder.
    """

    zone: ZoneInfo
    modes: Mapping[str, Mode] = field(default_factory=dict)
    default_mode: Mode = Mode.APPROVAL
    wait: timedelta = timedelta(minutes=5)
    interval: timedelta = timedelta(hours=4)
    repeat: timedelta = timedelta(days=7)
    growth: float = 2.0
    quiet_from: int = 0
    quiet_until: int = 0
    on_weekends: bool = True
    holidays: Collection[date] = ()
    daily_cap: int = 2
    hourly_brake: int = 20
    excluded: Collection[str] = ()
    fresh: timedelta = timedelta(hours=2)
    follow_up_after: timedelta = timedelta(days=7)

    def mode(self, rule: str) -> Mode:
        """Return the mode of a rule."""
        return Mode(self.modes.get(rule, self.default_mode))  # stored ones are texts


@dataclass(frozen=True)
class Candidate:
    """A case with all facts that decide about its mail.

    Args:
        case: its number.
        rule: code of its rule.
        is_about_impact: whether the rule is about the waiting of others.
        is_notice: whether its severity is *notice*: advice only.
        state: of the case; "ended": it was resolved because its findings ended; "expired": it was
            resolved without staff otherwise.
        recipient: its owner, a user name; "": unknown.
        address: the mail address; "": unknown.
        filesystem: its filesystem; "": none.
        value: of the measure.
        opened_at: when it was noticed.
        lag: from its latest data to its evaluation.
        has_findings: whether some of its findings still apply and are on good data.
        is_about_data: whether the rule is about data quality.
        mailed_at: the last mail about it to its owner; None: none.
        mailed_value: the value in that mail; 0: the mail does not count for growth.
        discarded_by: the member of staff who discarded that mail; "": nobody.
        bounced_at: when a mail to the address bounced; None: not known.
        until: its latest data.
        same_harm: the last mail to the owner about another case with the same harm; None: none.
        is_going_on: whether a server that it harms is slow now.
    """

    case: int
    rule: str
    is_about_impact: bool
    is_notice: bool
    state: str
    recipient: str
    address: str
    filesystem: str
    value: float
    opened_at: datetime
    lag: timedelta
    has_findings: bool = True
    is_about_data: bool = False
    mailed_at: datetime | None = None
    mailed_value: float = 0.0
    discarded_by: str = ""
    bounced_at: datetime | None = None
    until: datetime | None = None
    same_harm: SameHarm | None = None
    is_going_on: bool = False


class SameHarm(NamedTuple):
    """A mail about another case with the harm of a case."""

    case: int
    at: datetime


@dataclass(frozen=True)
class Silence:
    """No mails for a time; None matches everything.

    Args:
        until: its end.
        recipient: of mails.
        rule: of cases.
        filesystem: of cases.
        reason: of the member of staff who created it.
    """

    until: datetime
    recipient: str | None = None
    rule: str | None = None
    filesystem: str | None = None
    reason: str = ""

    def matches(self, candidate: Candidate) -> bool:
        """Return whether it applies to a case."""
        return all(
            wanted in (None, actual)
            for wanted, actual in (
                (self.recipient, candidate.recipient),
                (self.rule, candidate.rule),
                (self.filesystem, candidate.filesystem),
            )
        )


@dataclass(frozen=True)
class Mailed:
    """An earlier mail, sent or still in the outbox."""

    recipient: str
    filesystem: str
    at: datetime


@dataclass(frozen=True)
class Decision:
    """What happens with some cases of a recipient and filesystem now, and why.

    Args:
        candidates: its cases; of a mail, all that it is about.
        verdict: what happens.
        reason: a sentence for staff.
        needs_approval: of a mail: whether a member of staff sends it.
        is_braked: whether the mails to all recipients within an hour delay it.
    """

    candidates: tuple[Candidate, ...]
    verdict: Verdict
    reason: str
    needs_approval: bool = False
    is_braked: bool = False


def decide(
    candidates: Iterable[Candidate],
    silences: Sequence[Silence],
    mailed: Sequence[Mailed],
    policy: Policy,
    now: datetime,
) -> list[Decision]:
    """Return a decision about every case.

    Args:
        candidates: unresolved cases, and ended cases.
        silences: all silences; expired ones are ignored.
        mailed: mails of the last day, and of `policy.interval`.
        policy: when mails are sent.
        now: the current time.
    """
    decisions: list[Decision] = []
    groups: dict[tuple[str, str], list[Candidate]] = defaultdict(list)
    everything = list(candidates)
    for candidate in everything:
        if reason := _withheld(candidate, everything, silences, policy, now):
            decisions.append(Decision((candidate,), Verdict.WITHHELD, reason))
        else:
            groups[candidate.recipient, candidate.filesystem].append(candidate)
    mailed = list(mailed)
    for (recipient, filesystem), members in sorted(groups.items()):
        decision = _of_group(members, mailed, policy, now)
        if decision.verdict is Verdict.MAIL:  # counts for the next groups
            mailed.append(Mailed(recipient, filesystem, now))
        decisions.append(decision)
    return decisions


def _withheld(
    candidate: Candidate,
    everything: Sequence[Candidate],
    silences: Sequence[Silence],
    policy: Policy,
    now: datetime,
) -> str:
    """Return why a case is not mailed about; "": it may be."""
    reasons = (
        *_objections(candidate, silences, policy, now),
        *_inhibited(candidate, everything, policy),
        *_repeated(candidate, policy, now),
        *_known(candidate, policy, now),
    )
    return reasons[0] if reasons else ""


def objection(
    candidate: Candidate, silences: Sequence[Silence], policy: Policy, now: datetime
) -> str:
    """Return why nothing is sent about a case, whatever was mailed before; "": it may be."""
    return next(_objections(candidate, silences, policy, now), "")


def objection_since(
    candidate: Candidate,
    silences: Sequence[Silence],
    policies: tuple[Policy, Policy],
    now: datetime,
    *,
    has_changed: bool,
) -> str:
    """Return why a mail that staff asked for is not sent after all; "": it may be.

    They knew the case and the rules of mails when they asked. Decisions since then count, as do
    unsound evidence and a recipient who gets no mails at any time.

    Args:
        candidate: the case.
        silences: those created since they asked.
        policies: when they asked, and now.
        now: the current time.
        has_changed: whether the state of the case has changed since they asked.
    """
    before, policy = policies
    if reason := refusal(candidate, policy):
        return reason
    newer = (
        *(() if any(_off(candidate, before)) else _off(candidate, policy)),
        *(_triaged(candidate) if has_changed else ()),
        *_silenced(candidate, silences, now),
    )
    return f"{newer[0]} This was decided after the draft was created." if newer else ""


def delay(recipient: str, mailed: Sequence[Mailed], policy: Policy, now: datetime) -> str:
    """Return why nothing is sent to a recipient now, but may be later; "": it may be."""
    reasons = (
        *_quiet(policy, now),
        *_too_many(recipient, mailed, policy, now),
        *_brake(mailed, policy, now),
    )
    return reasons[0] if reasons else ""


def bounced(address: str, at: datetime, policy: Policy) -> str:
    """Return why nothing is sent to an address from which a mail bounced."""
    return f"Mails to {address} bounced on {at.astimezone(policy.zone):%Y-%m-%d}."


def _objections(
    candidate: Candidate, silences: Sequence[Silence], policy: Policy, now: datetime
) -> Iterator[str]:
    yield from _unfit(candidate, policy)
    yield from _unreachable(candidate, policy)
    yield from _silenced(candidate, silences, now)


def channel_objection(
    candidate: Candidate, silences: Sequence[Silence], policy: Policy, now: datetime
) -> str:
    """Return why channels are not notified of a case; "": they may be."""
    return next(_channel_objections(candidate, silences, policy, now), "")


def _channel_objections(
    candidate: Candidate, silences: Sequence[Silence], policy: Policy, now: datetime
) -> Iterator[str]:
    if candidate.is_notice:
        yield "It is a notice."
    if candidate.state not in {"open", "acknowledged"}:
        yield f"The case is {candidate.state}."
    if not candidate.has_findings:
        yield "It has no finding on good data that still applies."
    if candidate.lag > policy.fresh:
        yield "Found in historical data that was loaded later."
    yield from _silenced(candidate, silences, now)


def refusal(candidate: Candidate, policy: Policy) -> str:
    """Return why not even staff may have a mail about a case written or sent; "": they may."""
    reasons = (*_unsound(candidate), *_unreachable(candidate, policy))
    return reasons[0] if reasons else ""


def _unsound(candidate: Candidate) -> Iterator[str]:
    """Yield why the evidence of a case blames no user."""
    if candidate.state == "suppressed":
        yield "Its data quality is not good."
    if candidate.is_about_data:
        yield "The rule is about data quality: it blames no user."
    if not candidate.has_findings:
        yield "It has no finding on good data that still applies."


def _unfit(candidate: Candidate, policy: Policy) -> Iterator[str]:
    """Yield why a case is never mailed about as it is."""
    yield from _off(candidate, policy)
    if candidate.is_notice:
        yield "It is a notice: advice, not a reason for a mail."
    yield from _unsound(candidate)
    yield from _triaged(candidate)
    if candidate.lag > policy.fresh:
        yield "Found in historical data that was loaded later."


def _off(candidate: Candidate, policy: Policy) -> Iterator[str]:
    if policy.mode(candidate.rule) is Mode.OFF:
        yield "Mails about this rule are off."


def _triaged(candidate: Candidate) -> Iterator[str]:
    """Yield what became of a case that needs no mail any more."""
    if candidate.state == "resolved":
        yield "The case is resolved."
    elif candidate.state == "expired":
        yield "The case ended: nothing was found any more."
    elif candidate.state not in {"open", "ended", "suppressed"}:
        yield f"The case is {candidate.state}: a member of staff is responsible."


def _unreachable(candidate: Candidate, policy: Policy) -> Iterator[str]:
    """Yield why the owner of a case gets no mails."""
    if not candidate.recipient:
        yield "Its owner is unknown."
    elif candidate.recipient in policy.excluded:
        yield f"{candidate.recipient} is excluded from mails."
    elif not candidate.address:
        yield f"{candidate.recipient} has no mail address."
    elif candidate.bounced_at:
        yield bounced(candidate.address, candidate.bounced_at, policy)


def _inhibited(
    candidate: Candidate, everything: Sequence[Candidate], policy: Policy
) -> Iterator[str]:
    """Yield the case about impact that explains a case about load.

    It is one that may be mailed about, or that a member of staff takes care of.
    """
    if candidate.is_about_impact:
        return
    for other in everything:
        # Impact of groups of jobs is on all filesystems.
        same_place = other.filesystem in {candidate.filesystem, ""}
        is_same_owner = other.recipient == candidate.recipient
        if not (other.is_about_impact and same_place and is_same_owner):
            continue
        if other.state == "acknowledged":
            other = replace(other, state="open")  # noqa: PLW2901
        if not any(_unfit(other, policy)):
            yield f"Case {other.case} about impact on others explains it."


def _silenced(candidate: Candidate, silences: Sequence[Silence], now: datetime) -> Iterator[str]:
    for silence in silences:
        if silence.until > now and silence.matches(candidate):
            yield f"Silenced until {silence.until:%Y-%m-%d %H:%M %Z}: {silence.reason}"


def _repeated(candidate: Candidate, policy: Policy, now: datetime) -> Iterator[str]:
    if candidate.mailed_at is None:
        return
    on = f"{candidate.mailed_at.astimezone(policy.zone):%Y-%m-%d}"
    by = f" (discarded by {candidate.discarded_by})" if candidate.discarded_by else ""
    if now < candidate.mailed_at + policy.repeat:
        yield f"A mail about it was written on {on}{by}; the next is due after {_days(policy)}."
    elif candidate.value < policy.growth * candidate.mailed_value:
        yield f"It has not grown since the mail of {on}{by}."


def _known(candidate: Candidate, policy: Policy, now: datetime) -> Iterator[str]:
    """Yield the mail about another case with the same harm: of some of the jobs, or of more."""
    other = candidate.same_harm
    if other is None:
        return
    has_newer_data = candidate.until is None or candidate.until > other.at
    if now < other.at + policy.repeat or not has_newer_data:
        on = f"{other.at.astimezone(policy.zone):%Y-%m-%d}"
        yield f"Case {other.case} is about the same harm; a mail about it was written on {on}."


def _days(policy: Policy) -> str:
    days = policy.repeat / timedelta(days=1)
    return f"{days:g} day{'' if days == 1 else 's'}"


def _of_group(
    members: Sequence[Candidate], mailed: Sequence[Mailed], policy: Policy, now: datetime
) -> Decision:
    """Decide about the cases of one recipient and filesystem that may be mailed about."""
    recipient, filesystem = members[0].recipient, members[0].filesystem
    cases = tuple(sorted(members, key=lambda each: each.case))
    reasons = [
        *_waiting(cases, policy, now),
        *_too_soon(recipient, filesystem, mailed, policy, now),
        *_quiet(policy, now),
        *_too_many(recipient, mailed, policy, now),
    ]
    brake = list(_brake(mailed, policy, now))
    if reasons or brake:
        reason = [*reasons, *brake][0]
        return Decision(cases, Verdict.LATER, reason, is_braked=not reasons)
    needs_approval = any(policy.mode(each.rule) is Mode.APPROVAL for each in cases)
    reason = _newness(cases)
    return Decision(cases, Verdict.MAIL, reason, needs_approval)


def _newness(cases: Sequence[Candidate]) -> str:
    """Return the reason of a mail: which of its cases it is the first about."""
    grown = sum(each.mailed_at is not None for each in cases)
    parts = [(len(cases) - grown, "new"), (grown, "grown")]
    if len(cases) == 1:
        return "Grown case." if grown else "New case."
    return f"{' and '.join(f'{count} {kind}' for count, kind in parts if count)} cases."


def _waiting(cases: Sequence[Candidate], policy: Policy, now: datetime) -> Iterator[str]:
    due = min(each.opened_at for each in cases) + policy.wait
    if now < due:
        yield f"Waits for further cases until {due.astimezone(policy.zone):%H:%M:%S}."
    harming = [each.opened_at + _DRAINS_WITHIN for each in cases if each.is_going_on]
    if harming and now < max(harming):
        until = f"{max(harming).astimezone(policy.zone):%H:%M}"
        yield f"The server is slow: waits for the end of the queue, at most until {until}."


def _too_soon(
    recipient: str, filesystem: str, mailed: Sequence[Mailed], policy: Policy, now: datetime
) -> Iterator[str]:
    earlier = (
        each.at for each in mailed if (each.recipient, each.filesystem) == (recipient, filesystem)
    )
    last = max(earlier, default=None)
    if last and now < last + policy.interval:
        due = (last + policy.interval).astimezone(policy.zone)
        yield f"The last mail to {recipient} was recent; the next one may follow at {due:%H:%M}."


def _quiet(policy: Policy, now: datetime) -> Iterator[str]:
    local = now.astimezone(policy.zone)
    if local.date() in policy.holidays:
        yield "Today is a holiday."
    if not policy.on_weekends and local.weekday() >= _SATURDAY:
        yield "No mails are sent on weekends."
    hours = (local.hour - policy.quiet_from) % 24
    if hours < (policy.quiet_until - policy.quiet_from) % 24:
        yield f"Quiet hours last until {policy.quiet_until:02d}:00."


def _too_many(
    recipient: str, mailed: Sequence[Mailed], policy: Policy, now: datetime
) -> Iterator[str]:
    today = [each for each in mailed if each.at > now - timedelta(days=1)]
    if sum(each.recipient == recipient for each in today) >= policy.daily_cap:
        yield f"{recipient} has reached the limit of {policy.daily_cap} within 24 hours."


def _brake(mailed: Sequence[Mailed], policy: Policy, now: datetime) -> Iterator[str]:
    if sum(each.at > now - timedelta(hours=1) for each in mailed) >= policy.hourly_brake:
        yield f"All recipients have reached the limit of {policy.hourly_brake} within an hour."
