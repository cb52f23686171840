"""Scores of a set's flags: which harmful subjects they name, and which flags are false.

Definitions: docs/performance.md, "Flag quality".
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ioportal.analysis.rules import BY_CODE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bench.flag_quality.blame import Blame

HARMFUL_S = 60.0
ORDINARY = "ordinary"
_ABOUT_DATA = {"unattributed", "contradicted-job-ids"} | {
    code for code, rule in BY_CODE.items() if rule.is_about_data
}
_COVERED = 0.5  # of a group's operations, by flagged jobs

Truth = dict[str, Any]
Key = tuple[str, str]  # kind and name of a group


@dataclass(frozen=True)
class Detection:
    """The detection of a harmful subject.

    Args:
        kind: its kind.
        name: its name.
        part: its role.
        harm_s: waiting of others.
        is_borderline: its harm is within a factor of two of the threshold.
        strength: the highest strength of flags at which it is named; None: missed.
        delay_s: from harm to flag; None: missed, or harmful before the stream.
    """

    kind: str
    name: str
    part: str
    harm_s: float
    is_borderline: bool
    strength: float | None
    delay_s: float | None


@dataclass(frozen=True)
class Case:
    """The result of a case.

    Args:
        rule: code of its rule.
        strength: the highest strength of its flags.
        is_true: a flag is on a harmful or wasteful subject.
        parts: roles of its subjects.
        subjects: kinds and names of its subjects.
        harm_s: the most harm of a subject.
    """

    rule: str
    strength: float
    is_true: bool
    parts: tuple[str, ...]
    subjects: tuple[Key, ...]
    harm_s: float


@dataclass(frozen=True)
class Scores:
    """The result of one set.

    Args:
        seed: its seed.
        ordinary_jobs: number of jobs of ordinary applications.
        subjects: all harmful subjects.
        cases: all cases with an accusation.
        notices: number of other cases by rule.
        spoofing_blamed: users with a false flag for requests of others with their job ids.
    """

    seed: int
    ordinary_jobs: int
    subjects: list[Detection]
    cases: list[Case]
    notices: dict[str, int]
    spoofing_blamed: int


def scores(truth: Truth, flags: Sequence[Blame]) -> Scores:
    """Compare flags with the truth; rules about data quality are apart."""
    about_loads = [flag for flag in flags if flag.rule not in _ABOUT_DATA]
    accusations = [flag for flag in about_loads if flag.is_accusation]
    labels = _Labels(truth)
    by_case: dict[int, list[Blame]] = defaultdict(list)
    for flag in accusations:
        by_case[flag.case].append(flag)
    noticed = {flag.case: flag.rule for flag in about_loads if flag.case not in by_case}
    return Scores(
        truth["seed"],
        sum(job["part"] == ORDINARY for job in truth["jobs"].values()),
        [_detection(truth, subject, accusations) for subject in labels.harmful],
        [labels.case(group) for _, group in sorted(by_case.items())],
        dict(sorted(Counter(noticed.values()).items())),
        _spoofing_blamed(truth, labels, accusations),
    )


class _Labels:
    """The subjects that flags may name."""

    def __init__(self, truth: Truth) -> None:
        self.harmful = [each for each in truth["subjects"] if each["harm_s"] >= HARMFUL_S]
        self._harm_s: dict[Key, float] = {
            (group["kind"], group["name"]): group["harm_s"] for group in truth["groups"]
        }
        self._parts = _main_parts(truth)
        self._guilty: set[Key] = {
            (group["kind"], group["name"])
            for group in truth["groups"]
            if group["harm_s"] >= HARMFUL_S or group["is_waste"]
        }
        for subject in self.harmful:
            self._guilty.update(("job", job) for job in subject["jobs"])
            for job in subject["jobs"]:
                self._guilty.update(_owners(truth["jobs"][job]))
            if subject["kind"] == "host":
                self._guilty.add(("host", truth["hosts"][subject["name"]]))

    def is_true(self, flag: Blame) -> bool:
        """Return whether a flag is on a harmful or wasteful subject, a part of it, or its owner."""
        return (flag.kind, flag.name) in self._guilty

    def case(self, flags: Sequence[Blame]) -> Case:
        """Return the result of the flags of a case."""
        subjects = sorted({(flag.kind, flag.name) for flag in flags})
        return Case(
            flags[0].rule,
            max(flag.strength for flag in flags),
            any(map(self.is_true, flags)),
            tuple(sorted({self._parts.get(subject, subject[0]) for subject in subjects})),
            tuple(subjects),
            max(self._harm_s.get(subject, 0.0) for subject in subjects),
        )


def _main_parts(truth: Truth) -> dict[Key, str]:
    """Return the role of each job, and that of most operations of each group."""
    operations: dict[Key, Counter[str]] = defaultdict(Counter)
    for name, job in truth["jobs"].items():
        for group in {("job", name), *_owners(job)}:
            operations[group][job["part"]] += job["operations"]
    return {group: parts.most_common(1)[0][0] for group, parts in operations.items()}


def _detection(truth: Truth, subject: dict[str, Any], flags: Sequence[Blame]) -> Detection:
    """Match the flags that name a subject, its owner, or jobs with most of its operations."""
    shares = {flag: _share(truth, subject, flag) for flag in flags}
    naming = [flag for flag, share in shares.items() if share]
    by_strength = sorted(naming, key=lambda flag: -flag.strength)
    by_time = sorted(naming, key=lambda flag: flag.first_seen)
    weakest, last = _covering(by_strength, shares), _covering(by_time, shares)
    onset = subject["onset"] and datetime.fromisoformat(subject["onset"])
    delay_s = None
    if last and onset and onset >= datetime.fromisoformat(truth["start"]):
        delay_s = max((last.first_seen - onset).total_seconds(), 0.0)
    return Detection(
        subject["kind"],
        subject["name"],
        subject["part"],
        subject["harm_s"],
        subject["is_borderline"],
        weakest.strength if weakest else None,
        delay_s,
    )


def _share(truth: Truth, subject: dict[str, Any], flag: Blame) -> float:
    """Return the part of a harmful subject that a flag names, by operations."""
    if subject["kind"] == "host":
        return float(flag.name in {subject["name"], truth["hosts"][subject["name"]]})
    named = [
        truth["jobs"][job]["operations"]
        for job in subject["jobs"]
        if (flag.kind, flag.name) in {("job", job), *_owners(truth["jobs"][job])}
    ]
    return float(sum(named) / max(subject["operations"], 1))


def _owners(job: dict[str, Any]) -> set[Key]:
    """Return the groups of a job."""
    application = f"{job['user']} {job['name']}"
    return {
        ("application", application),
        ("user", job["user"]),
        ("project", job["project"]),
    }


def _covering(flags: Iterable[Blame], shares: dict[Blame, float]) -> Blame | None:
    """Return the flag that completes half of a subject; None: it is missed."""
    covered: dict[str, float] = {}
    for flag in flags:
        covered[flag.name] = shares[flag]
        if sum(covered.values()) >= _COVERED:
            return flag
    return None


def _spoofing_blamed(truth: Truth, labels: _Labels, flags: Iterable[Blame]) -> int:
    victims = {job["claims"].split(":")[0] for job in truth["jobs"].values() if job["spoofs"]}
    return len(
        {
            truth["jobs"][flag.name]["user"]
            for flag in flags
            if flag.kind == "job" and flag.name in victims and not labels.is_true(flag)
        }
    )
