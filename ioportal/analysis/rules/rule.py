"""What a rule is: data around one small function from evidence to findings."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, TypeAlias

import polars as pl

if TYPE_CHECKING:
    from ioportal.analysis.metrics import Source, Unit

Limits: TypeAlias = Mapping[str, float]
Check: TypeAlias = Callable[[pl.DataFrame, Limits], pl.DataFrame]

_FORM = re.compile(r"B|,?(\.\d)?[fg%]?")  # how an advice may have a number written; B: in GB or so
_BYTES = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")  # powers of 1000

# What a check returns: one row for each subject that is over the limits.
FINDINGS = {"subject": pl.String(), "numbers": pl.Struct}


class Severity(IntEnum):
    """How much a finding matters."""

    NOTICE = 1
    WARNING = 2
    ABUSE = 3


class Subject(StrEnum):
    """What a rule judges."""

    JOB = "job"
    USER = "user"
    HOST = "host"  # a host, or a process of no job: who sends RPCs outside any job
    FILESYSTEM = "filesystem"


@dataclass(frozen=True)
class Limit:
    """A number that a site may set."""

    default: float
    title: str
    unit: Unit
    least: float = 0  # what may be set
    most: float = 1e18
    at_most: bool = False  # a finding has no more of it; else no less


@dataclass(frozen=True)
class Example:
    """A subject that a rule finds, of the simulator's labelled set (seed 101).

    Args:
        who: in words.
        evidence: what was known of it, by the names of `evidence`; what the rule does not ask for
            is left out.
    """

    who: str
    evidence: Mapping[str, float]


@dataclass(frozen=True)
class Rule:
    """A judgement that flags rest on.

    `measure` is the number that grows with the harm: it is charted against the limit of the same
    name, and a finding of `abuse_times` that limit is abuse once it has lasted. The other limits
    say what must hold besides. Figures that are not known are never over a limit.
    """

    code: str  # stored in flags: never renamed
    version: int  # bumped when the meaning changes; old flags keep theirs
    title: str
    meaning: str
    subject: Subject
    source: Source  # of the data that must be good, or nobody is blamed by them
    severity: Severity
    measure: str
    limits: Mapping[str, Limit]
    advice: str  # with the subject's numbers, and the limits as `limit_NAME`
    check: Check
    example: Example
    abuse_times: float | None = None
    is_about_data: bool = False  # judged whatever the quality of the data
    others: Collection[str] = ()  # evidence about other jobs that it needs
    caveat: str = ""
    units: Mapping[str, Unit] = field(default_factory=dict)  # of numbers that have no limit

    @property
    def defaults(self) -> dict[str, float]:
        """The limits where a site sets none."""
        return {name: limit.default for name, limit in self.limits.items()}

    def held(self, limits: Limits, share: float) -> dict[str, float]:
        """Return the limits that an open flag is held to: shares of those that it opens at.

        It opens at the limits and resolves below the share of any: between the two it stays.
        """
        return {
            name: limits[name] / share if limit.at_most else limits[name] * share
            for name, limit in self.limits.items()
        }

    def unit(self, number: str) -> Unit:
        """Return the unit of a number."""
        return self.limits[number].unit if number in self.limits else self.units[number]

    def advise(self, numbers: Mapping[str, float | None], limits: Limits) -> str:
        """Return the advice with a subject's own numbers."""
        return advise(self.advice, numbers, limits)

    def severity_of(self, value: float, limits: Limits, *, has_lasted: bool) -> Severity:
        """Return how much a value of the measure matters."""
        most = limits[self.measure] * self.abuse_times if self.abuse_times else None
        return Severity.ABUSE if most and has_lasted and value >= most else self.severity


def refuse_unusable(advice: str, known: Collection[str]) -> None:
    """Refuse an advice that could not be filled in.

    Args:
        advice: with names in braces, and how each is to be written: ``{opens:,.0f}``.
        known: the names that it may use.

    Raises:
        ValueError: it says what is wrong.
    """
    for _, name, form, conversion in string.Formatter().parse(advice):
        if name is None:
            continue
        if name not in known:
            raise ValueError(f"{{{name}}} is not known here: {', '.join(sorted(known))} are.")
        if conversion or not _FORM.fullmatch(form or ""):
            raise ValueError(f"{{{name}:{form}}}: write a number like {{{name}:,.0f}}.")


class _Number(float):
    """A number that knows one more form."""

    def __format__(self, form: str) -> str:
        if form != "B":
            return super().__format__(form)
        scaled, power = float(self), 0
        while scaled >= 999.5 and power < len(_BYTES) - 1:  # noqa: PLR2004  (else it is 1,000)
            scaled, power = scaled / 1000, power + 1
        return f"{scaled:,.3g} {_BYTES[power]}"


class _Unknown:
    """A number that is not known, whatever form it is asked for in."""

    def __format__(self, form: str) -> str:
        return "unknown"


class _Told(dict[str, _Number | _Unknown]):
    """Numbers by name: those of others, too, so that no advice of long ago can stop a judge."""

    def __missing__(self, name: str) -> _Unknown:
        return _Unknown()


def advise(text: str, numbers: Mapping[str, float | None], limits: Limits) -> str:
    """Fill an advice in.

    Args:
        text: a site's own, or the rule's.
        numbers: of the subject; None: not known. What the advice names and is not there is not
            known, either.
        limits: those that it was judged by.

    Raises:
        ValueError: it is no format that numbers have.
    """
    known = {**{f"limit_{name}": value for name, value in limits.items()}, **numbers}
    told = {name: _Number(value) for name, value in known.items() if value is not None}
    return text.format_map(_Told(told))
