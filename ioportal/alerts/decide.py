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
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import date, datetime
    from zoneinfo import ZoneInfo

_SATURDAY = 5
_DRAINS_WITHIN = timedelta(minutes=10)  # a queue: its mail waits for the whole harm
_GROWTH = 2.0  # times the value in the last mail about a case
FRESH = timedelta(hours=2)  # maximum age of data when it was evaluated: older data is history
_HISTORICAL = "Found in historical data that was loaded later."
_NO_FINDING = "It has no finding on good data that still applies."


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
    """When mails are sent."""

    zone: ZoneInfo  # of hours and days
    modes: Mapping[str, Mode] = field(default_factory=dict)  # by rule
    default_mode: Mode = Mode.APPROVAL  # of other rules
    wait: timedelta = timedelta(minutes=5)  # for further cases of a group, from its first
    interval: timedelta = timedelta(hours=4)  # minimum time between mails to a group
    repeat: timedelta = timedelta(days=7)  # between mails about the same case, if it has grown
    quiet_from: int = 0  # hour of the day from which no mail is sent
    quiet_until: int = 0  # equal to `quiet_from`: no quiet hours
    on_weekends: bool = True  # whether mails are sent on Saturdays and Sundays
    holidays: Collection[date] = ()  # without mails
    daily_cap: int = 2  # mails to a recipient within 24 hours
    hourly_brake: int = 20  # mails to all recipients within an hour; beyond, mails are held
    excluded: Collection[str] = ()  # users who never get mails
    follow_up_after: timedelta = timedelta(days=7)  # time for changes before a reminder

    def mode(self, rule: str) -> Mode:
        """Return the mode of a rule."""
        return Mode(self.modes.get(rule, self.default_mode))  # stored ones are texts


@dataclass(frozen=True)
class Candidate:
    """A case with all facts that decide about its mail."""

    case: int
    rule: str  # its code
    is_about_impact: bool  # whether the rule is about the waiting of others
    is_notice: bool  # whether its severity is *notice*: advice only
    # Of the case; "ended": it was resolved because its findings ended; "expired": it was resolved
    # without staff otherwise.
    state: str
    recipient: str  # its owner, a user name; "": unknown
    address: str  # "": unknown
    filesystem: str  # "": none
    value: float  # of the measure
    opened_at: datetime
    lag: timedelta  # from its latest data to its evaluation
    has_findings: bool = True  # whether some still apply and are on good data
    is_about_data: bool = False  # whether the rule is about data quality
    mailed_at: datetime | None = None  # the last mail about it to its owner
    mailed_value: float = 0.0  # in that mail; 0: the mail does not count for growth
    discarded_by: str = ""  # the member of staff who discarded that mail
    bounced_at: datetime | None = None  # a mail to the address
    until: datetime | None = None  # its latest data
    same_harm: SameHarm | None = None  # the last mail to the owner about another case with it
    is_going_on: bool = False  # whether a server that it harms is slow now


class SameHarm(NamedTuple):
    """A mail about another case with the harm of a case."""

    case: int
    at: datetime


class Silence(NamedTuple):
    """No mails for a time; fields without a value match everything."""

    until: datetime
    recipient: str = ""
    rule: str = ""
    filesystem: str | None = None
    reason: str = ""

    def matches(self, candidate: Candidate) -> bool:
        """Return whether it applies to a case."""
        return (
            self.recipient in {"", candidate.recipient}
            and self.rule in {"", candidate.rule}
            and self.filesystem in {None, candidate.filesystem}
        )


class Mailed(NamedTuple):
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
    mailed: Iterable[Mailed],
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
        reason = (
            objection(candidate, silences, policy, now)
            or _inhibited(candidate, everything, policy)
            or _repeated(candidate, policy, now)
            or _known(candidate, policy, now)
        )
        if reason:
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


# The following functions return a reason as a sentence; "": there is none.


def objection(
    candidate: Candidate, silences: Iterable[Silence], policy: Policy, now: datetime
) -> str:
    """Return why nothing is sent about a case, whatever was mailed before."""
    return (
        _unfit(candidate, policy)
        or _unreachable(candidate, policy)
        or _silenced(candidate, silences, now)
    )


def objection_since(
    candidate: Candidate,
    silences: Iterable[Silence],
    policies: tuple[Policy, Policy],
    now: datetime,
    *,
    has_changed: bool,
) -> str:
    """Return why a mail that staff asked for is not sent after all.

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
        ("" if _off(candidate, before) else _off(candidate, policy))
        or (_triaged(candidate) if has_changed else "")
        or _silenced(candidate, silences, now)
    )
    return f"{newer} This was decided after the draft was created." if newer else ""


def delay(recipient: str, mailed: Sequence[Mailed], policy: Policy, now: datetime) -> str:
    """Return why nothing is sent to a recipient now, but may be later."""
    return (
        _quiet(policy, now)
        or _too_many(recipient, mailed, policy, now)
        or _brake(mailed, policy, now)
    )


def bounced(address: str, at: datetime, policy: Policy) -> str:
    """Return why nothing is sent to an address from which a mail bounced."""
    return f"Mails to {address} bounced on {at.astimezone(policy.zone):%Y-%m-%d}."


def channel_objection(candidate: Candidate, silences: Iterable[Silence], now: datetime) -> str:
    """Return why channels are not notified of a case."""
    if candidate.is_notice:
        return "It is a notice."
    if candidate.state not in {"open", "acknowledged"}:
        return f"The case is {candidate.state}."
    if not candidate.has_findings:
        return _NO_FINDING
    return _HISTORICAL if candidate.lag > FRESH else _silenced(candidate, silences, now)


def refusal(candidate: Candidate, policy: Policy) -> str:
    """Return why not even staff may have a mail about a case written or sent."""
    return _unsound(candidate) or _unreachable(candidate, policy)


def _unsound(candidate: Candidate) -> str:
    """Return why the evidence of a case points to no user; "" if it does."""
    if candidate.state == "suppressed":
        return "Its data quality is not good."
    if candidate.is_about_data:
        return "The rule is about data quality: it blames no user."
    return "" if candidate.has_findings else _NO_FINDING


def _unfit(candidate: Candidate, policy: Policy) -> str:
    """Return why a case is never mailed about as it is."""
    if reason := _off(candidate, policy):
        return reason
    if candidate.is_notice:
        return "It is a notice: advice, not a reason for a mail."
    is_historical = candidate.lag > FRESH
    return _unsound(candidate) or _triaged(candidate) or (_HISTORICAL if is_historical else "")


def _off(candidate: Candidate, policy: Policy) -> str:
    return "Mails about this rule are off." if policy.mode(candidate.rule) is Mode.OFF else ""


def _triaged(candidate: Candidate) -> str:
    """Return what became of a case that needs no mail any more."""
    if candidate.state == "resolved":
        return "The case is resolved."
    if candidate.state == "expired":
        return "The case ended: nothing was found any more."
    if candidate.state not in {"open", "ended", "suppressed"}:
        return f"The case is {candidate.state}: a member of staff is responsible."
    return ""


def _unreachable(candidate: Candidate, policy: Policy) -> str:
    """Return why the owner of a case gets no mails."""
    if not candidate.recipient:
        return "Its owner is unknown."
    if candidate.recipient in policy.excluded:
        return f"{candidate.recipient} is excluded from mails."
    if not candidate.address:
        return f"{candidate.recipient} has no mail address."
    if candidate.bounced_at:
        return bounced(candidate.address, candidate.bounced_at, policy)
    return ""


def _inhibited(candidate: Candidate, everything: Iterable[Candidate], policy: Policy) -> str:
    """Return the case about impact that explains a case about load.

    It is one that may be mailed about, or that a member of staff takes care of.
    """
    if candidate.is_about_impact:
        return ""
    for other in everything:
        # Impact of groups of jobs is on all filesystems.
        same_place = other.filesystem in {candidate.filesystem, ""}
        is_same_owner = other.recipient == candidate.recipient
        if not (other.is_about_impact and same_place and is_same_owner):
            continue
        if other.state == "acknowledged":
            other = replace(other, state="open")  # noqa: PLW2901
        if not _unfit(other, policy):
            return f"Case {other.case} about impact on others explains it."
    return ""


def _silenced(candidate: Candidate, silences: Iterable[Silence], now: datetime) -> str:
    for silence in silences:
        if silence.until > now and silence.matches(candidate):
            return f"Silenced until {silence.until:%Y-%m-%d %H:%M %Z}: {silence.reason}"
    return ""


def _repeated(candidate: Candidate, policy: Policy, now: datetime) -> str:
    if candidate.mailed_at is None:
        return ""
    on = f"{candidate.mailed_at.astimezone(policy.zone):%Y-%m-%d}"
    by = f" (discarded by {candidate.discarded_by})" if candidate.discarded_by else ""
    if now < candidate.mailed_at + policy.repeat:
        days = policy.repeat / timedelta(days=1)
        after = f"{days:g} day{'' if days == 1 else 's'}"
        return f"A mail about it was written on {on}{by}; the next is due after {after}."
    has_grown = candidate.value >= _GROWTH * candidate.mailed_value
    return "" if has_grown else f"It has not grown since the mail of {on}{by}."


def _known(candidate: Candidate, policy: Policy, now: datetime) -> str:
    """Return the mail about another case with the same harm: of some of the jobs, or of more."""
    other = candidate.same_harm
    if other is None:
        return ""
    has_newer_data = candidate.until is None or candidate.until > other.at
    if now >= other.at + policy.repeat and has_newer_data:
        return ""
    on = f"{other.at.astimezone(policy.zone):%Y-%m-%d}"
    return f"Case {other.case} is about the same harm; a mail about it was written on {on}."


def _of_group(
    members: Sequence[Candidate], mailed: Sequence[Mailed], policy: Policy, now: datetime
) -> Decision:
    """Decide about the cases of one recipient and filesystem that may be mailed about."""
    recipient = members[0].recipient
    cases = tuple(sorted(members, key=lambda each: each.case))
    reason = (
        _waiting(cases, policy, now)
        or _too_soon(recipient, members[0].filesystem, mailed, policy, now)
        or _quiet(policy, now)
        or _too_many(recipient, mailed, policy, now)
    )
    if reason:
        return Decision(cases, Verdict.LATER, reason)
    if reason := _brake(mailed, policy, now):
        return Decision(cases, Verdict.LATER, reason, is_braked=True)
    needs_approval = any(policy.mode(each.rule) is Mode.APPROVAL for each in cases)
    return Decision(cases, Verdict.MAIL, _newness(cases), needs_approval)


def _newness(cases: Sequence[Candidate]) -> str:
    """Return the reason of a mail: which of its cases it is the first about."""
    grown = sum(each.mailed_at is not None for each in cases)
    parts = [(len(cases) - grown, "new"), (grown, "grown")]
    if len(cases) == 1:
        return "Grown case." if grown else "New case."
    return f"{' and '.join(f'{count} {kind}' for count, kind in parts if count)} cases."


def _waiting(cases: Sequence[Candidate], policy: Policy, now: datetime) -> str:
    due = min(each.opened_at for each in cases) + policy.wait
    if now < due:
        return f"Waits for further cases until {due.astimezone(policy.zone):%H:%M:%S}."
    harming = [each.opened_at + _DRAINS_WITHIN for each in cases if each.is_going_on]
    if harming and now < max(harming):
        until = f"{max(harming).astimezone(policy.zone):%H:%M}"
        return f"The server is slow: waits for the end of the queue, at most until {until}."
    return ""


def _too_soon(
    recipient: str, filesystem: str, mailed: Iterable[Mailed], policy: Policy, now: datetime
) -> str:
    earlier = [each.at for each in mailed if each[:2] == (recipient, filesystem)]
    if not earlier or now >= max(earlier) + policy.interval:
        return ""
    due = (max(earlier) + policy.interval).astimezone(policy.zone)
    return f"The last mail to {recipient} was recent; the next one may follow at {due:%H:%M}."


def _quiet(policy: Policy, now: datetime) -> str:
    local = now.astimezone(policy.zone)
    if local.date() in policy.holidays:
        return "Today is a holiday."
    if not policy.on_weekends and local.weekday() >= _SATURDAY:
        return "No mails are sent on weekends."
    hours = (local.hour - policy.quiet_from) % 24
    is_quiet = hours < (policy.quiet_until - policy.quiet_from) % 24
    return f"Quiet hours last until {policy.quiet_until:02d}:00." if is_quiet else ""


def _too_many(recipient: str, mailed: Iterable[Mailed], policy: Policy, now: datetime) -> str:
    today = [each for each in mailed if each.at > now - timedelta(days=1)]
    if sum(each.recipient == recipient for each in today) < policy.daily_cap:
        return ""
    return f"{recipient} has reached the limit of {policy.daily_cap} within 24 hours."


def _brake(mailed: Iterable[Mailed], policy: Policy, now: datetime) -> str:
    if sum(each.at > now - timedelta(hours=1) for each in mailed) < policy.hourly_brake:
        return ""
    return f"All recipients have reached the limit of {policy.hourly_brake} within an hour."
