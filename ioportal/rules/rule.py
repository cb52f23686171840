"""The `Rule` record: data around one function from evidence to findings."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, TypeAlias

import polars as pl

if TYPE_CHECKING:
    from ioportal.core.units import Source, Unit

Thresholds: TypeAlias = Mapping[str, float]
# Returns one row per subject over the thresholds: subject (str) and numbers (struct).
Check: TypeAlias = Callable[[pl.DataFrame, Thresholds], pl.DataFrame]

# Of numbers in an advice. B: bytes with a unit; E: "estimated", or "measured" if 0.
_FORMAT = re.compile(r"B|E|,?(\.\d)?[fg%]?")
_BYTES = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")  # powers of 1000


# A subject below these harms no others:
HARM_S = 60.0  # extra wait of others
ABUSE_AT_ONCE = 2.0  # times `abuse_times`: abuse however short
HARM_SHARE = 0.2  # of the server's capacity: with less, even unknown harm is small
PART_SHARE = 0.5  # of a group's harm or operations: then the part is accused instead


class Severity(IntEnum):
    """Severity of a finding."""

    NOTICE = 1  # advice: others did not wait for the subject
    WARNING = 2
    ABUSE = 3


class Subject(StrEnum):
    """Kind of subject that a rule evaluates."""

    JOB = "job"
    USER = "user"
    PROJECT = "project"
    APPLICATION = "application"  # all jobs of a user with one application name
    CAMPAIGN = "campaign"  # all jobs of a project with one application name
    HOST = "host"  # a host or process outside any job, or what sends job ids of other jobs
    FILESYSTEM = "filesystem"


# Groups of jobs, narrow before wide. Rules about users evaluate all groups.
GROUPS = (Subject.APPLICATION, Subject.USER, Subject.CAMPAIGN, Subject.PROJECT)
PROJECT_GROUPS = (Subject.CAMPAIGN, Subject.PROJECT)  # of several users, in general


def is_explained() -> pl.Expr:
    """Return whether parts of a group explain its impact, so that it is not accused."""
    explained = pl.col("parts_impact_s").fill_null(0)
    return (explained > 0) & (explained >= PART_SHARE * pl.col("impact_s"))


@dataclass(frozen=True)
class Threshold:
    """A number that a site may set."""

    default: float
    title: str
    unit: Unit
    minimum: float = 0  # of the values a site may set
    maximum: float = 1e18
    is_ceiling: bool = False  # findings are at or below the threshold; otherwise at or above
    goal: str = ""  # what solves a finding, with the threshold as `{}`; "": the title and the bound


@dataclass(frozen=True)
class Example:
    """A subject that a rule flags; most are from simulated logs.

    Args:
        title: the subject in words.
        evidence: its evidence, as far as the rule reads it.
    """

    title: str
    evidence: Mapping[str, float]


@dataclass(frozen=True)
class Rule:
    """A check of one kind of subject, with its thresholds and texts.

    `measure` is the main number: it has a threshold of the same name and is charted against it. A
    finding of `abuse_times` that threshold is abuse once it has lasted, unless `abuse_share` is
    small. All other thresholds must be exceeded too. Unknown figures never exceed a threshold.
    """

    code: str  # stored in flags: never renamed
    version: int  # incremented when the meaning changes; flags keep the version they had
    title: str
    meaning: str
    subject: Subject
    source: Source  # its data quality must be good, otherwise findings are suppressed
    severity: Severity
    measure: str
    thresholds: Mapping[str, Threshold]
    advice: str  # with the numbers of a finding, and thresholds as `threshold_NAME`
    check: Check
    example: Example
    abuse_times: float | None = None
    abuse_share: str = ""  # a number that is at least `HARM_SHARE` in abuse
    # Findings on harmless subjects, or on subjects that a rule about impact flags, are notices.
    needs_harm: bool = False
    adds_up: bool = False  # over jobs: the measure is a total of the run
    is_about_data: bool = False  # evaluated at any data quality
    usual: Collection[str] = ()  # columns about similar jobs that the check reads
    caveat: str = ""
    units: Mapping[str, Unit] = field(default_factory=dict)  # of numbers without a threshold
    plain_measure: str = ""  # a number that mails quote instead of a measure for experts

    @property
    def subjects(self) -> tuple[Subject, ...]:
        """All kinds of subjects that the rule evaluates."""
        return GROUPS if self.subject is Subject.USER else (self.subject,)

    @property
    def defaults(self) -> dict[str, float]:
        """Default thresholds."""
        return {name: threshold.default for name, threshold in self.thresholds.items()}

    def relaxed(self, thresholds: Thresholds, share: float) -> dict[str, float]:
        """Return the thresholds below which an open flag resolves: a share of each."""
        return {
            name: thresholds[name] / share if threshold.is_ceiling else thresholds[name] * share
            for name, threshold in self.thresholds.items()
        }

    def unit(self, number: str) -> Unit:
        """Return the unit of a number in the findings."""
        return self.thresholds[number].unit if number in self.thresholds else self.units[number]

    def advise(self, numbers: Mapping[str, float | None], thresholds: Thresholds) -> str:
        """Return the advice with a finding's numbers."""
        return advise(self.advice, numbers, thresholds)

    def severity_at(
        self,
        value: float,
        thresholds: Thresholds,
        *,
        share: float | None = None,
        harm_s: float | None = None,
        harm_is_flagged: bool = False,
        has_lasted: bool = False,
    ) -> Severity:
        """Return the severity of a finding.

        Args:
            value: value of the measure.
            thresholds: thresholds of the evaluation.
            share: value of `abuse_share`; None: the rule has none, or it is unknown.
            harm_s: extra wait of others because of the subject, at least; None: unknown, and
                abuse needs harm that is known.
            harm_is_flagged: whether a rule about impact flags the subject.
            has_lasted: whether the finding is old enough to be abuse at `abuse_times`.
        """
        is_harmless = harm_s is not None and harm_s < HARM_S
        if self.needs_harm and (is_harmless or harm_is_flagged):
            return Severity.NOTICE
        if not self.abuse_times or (self.needs_harm and harm_s is None):
            return self.severity
        times = self.abuse_times if has_lasted else ABUSE_AT_ONCE * self.abuse_times
        is_small = share is not None and share < HARM_SHARE
        is_abuse = value >= thresholds[self.measure] * times and not is_small
        return Severity.ABUSE if is_abuse else self.severity


def refuse_unusable(advice: str, known: Collection[str]) -> None:
    """Refuse an advice that cannot be filled in.

    Args:
        advice: text with number names in braces and their formats: ``{opens:,.0f}``.
        known: the names it may use.

    Raises:
        ValueError: a name is unknown, or a format is invalid; the message says which.
    """
    for _, name, form, conversion in string.Formatter().parse(advice):
        if name is None:
            continue
        if name not in known:
            raise ValueError(f"{{{name}}} is unknown. Use one of: {', '.join(sorted(known))}.")
        if conversion or not _FORMAT.fullmatch(form or ""):
            raise ValueError(f"{{{name}:{form}}}: invalid format. Example: {{{name}:,.0f}}.")


class _Number(float):
    """A number with the additional formats of `_FORMAT`."""

    def __format__(self, form: str) -> str:
        if form == "E":
            return "estimated" if self else "measured"
        if form != "B":
            return super().__format__(form)
        scaled, power = float(self), 0
        while scaled >= 999.5 and power < len(_BYTES) - 1:  # noqa: PLR2004  (rounds to 1,000)
            scaled, power = scaled / 1000, power + 1
        return f"{scaled:,.3g} {_BYTES[power]}"


class _Unknown:
    """An unknown number: the same text in every format."""

    def __format__(self, form: str) -> str:
        return "unknown"


class _Numbers(dict[str, _Number | _Unknown]):
    """Numbers by name. Missing ones are unknown: an outdated advice must not stop evaluation."""

    def __missing__(self, name: str) -> _Unknown:
        return _Unknown()


def advise(text: str, numbers: Mapping[str, float | None], thresholds: Thresholds) -> str:
    """Fill in an advice.

    Args:
        text: advice of the site or of the rule.
        numbers: numbers of a finding; None: unknown. Names that are missing are unknown too.
        thresholds: thresholds of the evaluation.

    Raises:
        ValueError: the text has an invalid number format.
    """
    values = {**{f"threshold_{name}": value for name, value in thresholds.items()}, **numbers}
    known = {name: _Number(value) for name, value in values.items() if value is not None}
    return text.format_map(_Numbers(known))
