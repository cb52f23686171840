"""Scores of a set's flags: which harmful subjects they name, and which flags are false.

Definitions: docs/performance.md, "Flag quality".
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar

from bench.flag_quality.blame import Sighting
from ioportal.rules import BY_CODE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from bench.flag_quality.blame import Blame

HARMFUL_S = 60.0
_ACCUSED_WITHIN = timedelta(seconds=150)  # the goal: later harm may be accused after the stream
ORDINARY = "ordinary"
_ABOUT_DATA = {"unattributed", "contradicted-job-ids"} | {
    code for code, rule in BY_CODE.items() if rule.is_about_data
}
_COVERED = 0.5  # of a group's operations, by flagged jobs
_EXPLAINED = 0.5  # of a group's harm, by accused parts: then the group is redundant
_ABOUT_WASTE = {
    "metadata-operations",
    "open-close-imbalance",
    "startup-storm",
    "unexplained-enqueues",
}
_ABOUT_IMPACT = "impact"  # first part of the codes of rules that estimate harm

Truth = dict[str, Any]
Key = tuple[str, str]  # kind and name of a group
_Named = TypeVar("_Named", "Blame", Sighting)
_NOBODY: frozenset[str] = frozenset()
_WIDTH = {"application": 1, "user": 2, "campaign": 3, "project": 4}  # others: 0


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
        observed_s: from harm until pages show it as under observation, or accuse it; None: never,
            or harmful before the stream.
        delay_s: from harm to the accusation.
    """

    kind: str
    name: str
    part: str
    harm_s: float
    is_borderline: bool
    strength: float | None
    observed_s: float | None
    delay_s: float | None


@dataclass(frozen=True)
class Case:
    """The result of a case.

    Args:
        rule: code of its rule.
        strength: the highest strength of its flags.
        is_true: a flag is true and not redundant.
        is_redundant: a flag is true, but the same harm has another accusation.
        parts: roles of its subjects.
        subjects: kinds and names of its subjects.
        harm_s: the most harm of a subject.
    """

    rule: str
    strength: float
    is_true: bool
    is_redundant: bool
    parts: tuple[str, ...]
    subjects: tuple[Key, ...]
    harm_s: float


@dataclass(frozen=True)
class Estimate:
    """An estimate of a harmful group's harm.

    Args:
        estimated_s: value of a rule about impact.
        harm_s: the group's harm.
    """

    estimated_s: float
    harm_s: float

    @property
    def factor(self) -> float:
        """Return by what factor the estimate is too high or too low."""
        if self.estimated_s <= 0:
            return inf
        return max(self.estimated_s / self.harm_s, self.harm_s / self.estimated_s)


@dataclass(frozen=True)
class Scores:
    """The result of one set.

    Args:
        seed: its seed.
        ordinary_jobs: number of jobs of ordinary applications.
        subjects: the harmful subjects whose accusation is due before the end of the set.
        cases: all cases with an accusation.
        estimates: of accusations by rules about impact.
        notices: number of other cases by rule.
        spoofing_blamed: users with a false flag for requests of others with their job ids.
    """

    seed: int
    ordinary_jobs: int
    subjects: list[Detection]
    cases: list[Case]
    estimates: list[Estimate]
    notices: dict[str, int]
    spoofing_blamed: int


def scores(truth: Truth, flags: Sequence[Blame], observed: Sequence[Sighting]) -> Scores:
    """Compare flags and observations with the truth; rules about data quality are apart."""
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
        [
            _detection(truth, subject, accusations, observed)
            for subject in labels.harmful
            if _is_due(truth, subject)
        ],
        [labels.case(group, accusations) for _, group in sorted(by_case.items())],
        list(labels.estimates(accusations)),
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
        self._members = _members(truth)
        self._wasteful: set[Key] = {
            (group["kind"], group["name"]) for group in truth["groups"] if group["is_waste"]
        }
        self._guilty = {key for key, harm_s in self._harm_s.items() if harm_s >= HARMFUL_S}
        self._groups: set[Key] = set()  # harmful subjects of several jobs
        for subject in self.harmful:
            if len(subject["jobs"]) > 1:
                self._groups.add((subject["kind"], subject["name"]))
            self._guilty.update(("job", job) for job in subject["jobs"])
            for job in subject["jobs"]:
                self._guilty.update(_owners(truth["jobs"][job]))
            if subject["kind"] == "host":
                self._guilty.add(("host", truth["hosts"][subject["name"]]))

    def is_harmful(self, key: Key) -> bool:
        """Return whether a group is a harmful subject, a part of one, or its owner."""
        return key in self._guilty

    def is_true(self, flag: Blame) -> bool:
        """Return whether a flag's subject does the harm or waste that the rule is about."""
        key = (flag.kind, flag.name)
        return self.is_harmful(key) or (flag.rule in _ABOUT_WASTE and key in self._wasteful)

    def is_redundant(self, key: Key, accused: set[Key]) -> bool:
        """Return whether the harm of a harmful group has another, narrower accusation.

        Accused parts that are harmful themselves explain half of its harm, or it is a harmless part
        of an accused group that is the narrowest subject.
        """
        harm_s = self._harm_s.get(key, 0.0)
        if not self.is_harmful(key):
            return False
        if harm_s < HARMFUL_S:
            return any(self._is_part(key, group) for group in accused & self._groups)
        parts = [
            each
            for each in accused
            if self._is_part(each, key) and self._harm_s.get(each, 0.0) >= HARMFUL_S
        ]
        widest = [each for each in parts if not any(self._is_part(each, part) for part in parts)]
        return sum(self._harm_s[each] for each in widest) >= _EXPLAINED * harm_s

    def _is_part(self, part: Key, whole: Key) -> bool:
        jobs, all_jobs = (self._members.get(key, _NOBODY) for key in (part, whole))
        is_narrower = _WIDTH.get(part[0], 0) < _WIDTH.get(whole[0], 0)
        return bool(jobs) and (jobs < all_jobs or (jobs == all_jobs and is_narrower))

    def case(self, flags: Sequence[Blame], accusations: Iterable[Blame]) -> Case:
        """Return the result of the flags of a case, among all accusations."""
        accused = {(flag.kind, flag.name) for flag in accusations}
        true = {(flag.kind, flag.name) for flag in flags if self.is_true(flag)}
        redundant = {key for key in true if self.is_redundant(key, accused)}
        subjects = sorted({(flag.kind, flag.name) for flag in flags})
        return Case(
            flags[0].rule,
            max(flag.strength for flag in flags),
            bool(true - redundant),
            bool(redundant),
            tuple(sorted({self._parts.get(subject, subject[0]) for subject in subjects})),
            tuple(subjects),
            max(self._harm_s.get(subject, 0.0) for subject in subjects),
        )

    def estimates(self, accusations: Iterable[Blame]) -> Iterator[Estimate]:
        """Yield the estimates of harmful groups' harm."""
        for flag in accusations:
            harm_s = self._harm_s.get((flag.kind, flag.name), 0.0)
            if flag.rule.startswith(_ABOUT_IMPACT) and harm_s >= HARMFUL_S:
                yield Estimate(flag.value, harm_s)


def _members(truth: Truth) -> dict[Key, frozenset[str]]:
    """Return the jobs of each group."""
    members: dict[Key, set[str]] = defaultdict(set)
    for name, job in truth["jobs"].items():
        for group in {("job", name), *_owners(job)}:
            members[group].add(name)
    return {group: frozenset(jobs) for group, jobs in members.items()}


def _main_parts(truth: Truth) -> dict[Key, str]:
    """Return the role of each job, and the role with most operations in each group."""
    operations: dict[Key, Counter[str]] = defaultdict(Counter)
    for name, job in truth["jobs"].items():
        for group in {("job", name), *_owners(job)}:
            operations[group][job["part"]] += job["operations"]
    return {group: parts.most_common(1)[0][0] for group, parts in operations.items()}


def _is_due(truth: Truth, subject: dict[str, Any]) -> bool:
    """Return whether the stream continues long enough after the onset of a subject's harm."""
    onset = subject["onset"]
    if not onset:
        return True
    end = datetime.fromisoformat(truth["end"])
    return end - datetime.fromisoformat(onset) >= _ACCUSED_WITHIN


def _detection(
    truth: Truth,
    subject: dict[str, Any],
    accusations: Sequence[Blame],
    observed: Sequence[Sighting],
) -> Detection:
    """Match what names a subject, its owner, or jobs with most of its operations."""
    strongest = sorted(accusations, key=lambda flag: -flag.strength)
    weakest = _covering(truth, subject, strongest)
    first = [Sighting(each.kind, each.name, each.first_seen) for each in accusations]
    accused, seen = (
        _covering(truth, subject, sorted(named, key=lambda each: each.first_seen))
        for named in (first, [*first, *observed])
    )
    onset = subject["onset"] and datetime.fromisoformat(subject["onset"])
    if onset and onset < datetime.fromisoformat(truth["start"]):
        onset = None

    def since_onset_s(moment: datetime | None) -> float | None:
        return max((moment - onset).total_seconds(), 0.0) if moment and onset else None

    return Detection(
        subject["kind"],
        subject["name"],
        subject["part"],
        subject["harm_s"],
        subject["is_borderline"],
        weakest.strength if weakest else None,
        since_onset_s(seen.first_seen if seen else None),
        since_onset_s(accused.first_seen if accused else None),
    )


def _share(truth: Truth, subject: dict[str, Any], each: Blame | Sighting) -> float:
    """Return the part of a harmful subject that a flag or sighting names, by operations."""
    if subject["kind"] == "host":
        return float(each.name in {subject["name"], truth["hosts"][subject["name"]]})
    named = [
        truth["jobs"][job]["operations"]
        for job in subject["jobs"]
        if (each.kind, each.name) in {("job", job), *_owners(truth["jobs"][job])}
    ]
    return float(sum(named) / max(subject["operations"], 1))


def _owners(job: dict[str, Any]) -> set[Key]:
    """Return the groups of a job."""
    application = f"{job['user']} {job['name']}"
    return {
        ("application", application),
        ("user", job["user"]),
        ("campaign", f"{job['project']} {job['name']}"),
        ("project", job["project"]),
    }


def _covering(truth: Truth, subject: dict[str, Any], named: Iterable[_Named]) -> _Named | None:
    """Return the flag or sighting that completes half of a subject; None: it is missed."""
    covered: dict[str, float] = {}
    for each in named:
        if share := _share(truth, subject, each):
            covered[each.name] = share
        if sum(covered.values()) >= _COVERED:
            return each
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
