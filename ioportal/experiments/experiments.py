"""Writes to experiments: arms and runs, from files and from the API."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from django.db import transaction

from collectors import tables
from ioportal.core.postgres.advisory_locks import Lock, hold
from ioportal.experiments.models import (
    Arm,
    Experiment,
    PairTransfer,
    ProcessSample,
    Run,
    SystemCall,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from django.contrib.auth.models import User

    from collectors.tables import Table
    from ioportal.jobs.models import Job

DEFAULT_ARM = "measured"
MEASUREMENTS: dict[Table, Any] = {  # models of the rows of runs
    tables.SYSTEM_CALLS: SystemCall,
    tables.PROCESS_SAMPLES: ProcessSample,
    tables.PAIR_TRANSFERS: PairTransfer,
}
NAME_CHARACTERS = 120
_OF_STATISTICS = {  # metrics of runs, and of batch jobs
    "wall_s": "duration_s",
    "efficiency_share": "cpu_efficiency",
    "read_bytes": "read_bytes",
    "write_bytes": "write_bytes",
    "metadata_operations": "metadata_operations",
    "opens": "opens",
    "closes": "closes",
}
ARM_CHARACTERS = 80


class Contradiction(Exception):  # noqa: N818  (a decision about the input)
    """A run has another value already; the message names both."""


class Ambiguous(Exception):  # noqa: N818  (a decision about the input)
    """Others have experiments of this name; the message names their owners."""


@dataclass(frozen=True)
class RunRecord:
    """What one source says about a run; empty values are unknown."""

    name: str
    arm: str = ""
    state: str = ""
    started_at: datetime | None = None
    scale: float | None = None
    events: int | None = None
    labels: dict[str, str] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    steps: list[dict[str, Any]] = field(default_factory=list)
    counters: list[dict[str, Any]] = field(default_factory=list)
    markers: list[str] = field(default_factory=list)
    recipe: dict[str, str] = field(default_factory=dict)


_VALUES = tuple(each.name for each in fields(RunRecord) if each.name not in {"name", "arm"})


@transaction.atomic
def named_experiment(
    name: str, owner: User | None = None, *, simulated: bool = False
) -> Experiment:
    """Return the experiment with a name or slug, of an owner; create it if there is none."""
    mine = Experiment.objects.filter(owner=owner)
    known = mine.filter(slug=name).first() or mine.filter(name=name).first()
    if known:
        return known
    hold(Lock.EXPERIMENTS)  # others choose slugs, or create it, at the same time
    if known := mine.filter(name=name).first():
        return known
    experiment = Experiment(name=name[:NAME_CHARACTERS], owner=owner, simulated=simulated)
    experiment.choose_slug()
    experiment.save()
    return experiment


def experiment_to_change(name: str, user: User) -> Experiment:
    """Return the experiment of a slug or name that the user may change, or a new one.

    The user's own experiment of this name precedes other experiments.

    Raises:
        Ambiguous: only others have an experiment of this name; their slugs are unambiguous.
    """
    editable = Experiment.objects.editable_by(user)
    named = editable.filter(name=name)
    if experiment := editable.filter(slug=name).first() or named.filter(owner=user).first():
        return experiment
    others = [
        f"{each.slug!r} (owner: {each.owner or 'none'})" for each in named.select_related("owner")
    ]
    if others:
        raise Ambiguous(
            f"Experiments of others have this name: {', '.join(others)}. "
            "Enter the quoted short name of an experiment, or choose another name."
        )
    return named_experiment(name, user)


def job_metrics(job: Job) -> dict[str, float]:
    """Return the known figures of a batch job as metrics of a run."""
    statistics = getattr(job, "statistics", None)
    figures = {
        name: getattr(statistics, metric) for name, metric in _OF_STATISTICS.items() if statistics
    }
    figures["cpu_s"] = job.cpu_s
    return {name: float(value) for name, value in figures.items() if value is not None}


@transaction.atomic
def record_runs(
    experiment: Experiment, records: Iterable[RunRecord], *, replace: bool = False
) -> list[Run]:
    """Store records of runs: new runs are added, known runs get the values that they lack.

    Args:
        experiment: the experiment of all records.
        records: at most one per run.
        replace: whether differing values replace the stored values of a run.

    Raises:
        Contradiction: a run has another value or another arm, or two records have one name.
    """
    records = list(records)
    Experiment.objects.select_for_update().get(pk=experiment.pk)
    arms = _arms(experiment, records)
    names = [record.name[:NAME_CHARACTERS] for record in records]
    [(most_frequent, times)] = Counter(names).most_common(1) or [("", 0)]
    if times > 1:
        raise Contradiction(f"Two records have the run name {most_frequent!r}. Rename one.")
    known = {run.name: run for run in experiment.runs.filter(name__in=names)}
    new, changed = [], []
    for name, record in zip(names, records, strict=True):
        run = known.get(name)
        arm = arms.get(record.arm[:ARM_CHARACTERS] or DEFAULT_ARM)
        if run is None:
            run = known[name] = Run(experiment=experiment, name=name, arm=arm)
            new.append(run)
        else:
            changed.append(run)
            if record.arm:
                _set(run, "arm", arm, replace=replace)
        for value in _VALUES:
            _merge(run, value, getattr(record, value), replace=replace)
    Run.objects.bulk_create(new)
    Run.objects.bulk_update(changed, ["arm", *_VALUES])
    return [known[name] for name in names]


def _arms(experiment: Experiment, records: Sequence[RunRecord]) -> dict[str, Arm]:
    """Return the arms of the records by name, in the order of the records; create missing ones."""
    names = [record.arm[:ARM_CHARACTERS] or DEFAULT_ARM for record in records]
    return {name: arm_named(experiment, name) for name in dict.fromkeys(names)}


def arm_named(experiment: Experiment, name: str) -> Arm:
    """Return the arm of an experiment with a name; create it if there is none."""
    last = {"position": experiment.arms.count()}
    arm, _ = Arm.objects.get_or_create(experiment=experiment, name=name, defaults=last)
    return arm


def order_arms(experiment: Experiment, names: Sequence[tuple[int, str]]) -> None:
    """Rename and order the arms of an experiment, given by key; arms without runs are deleted.

    Raises:
        Contradiction: two arms would have one name.
    """
    if len({name for _, name in names}) < len(names):
        raise Contradiction("Two arms have the same name.")
    with transaction.atomic():
        experiment.arms.filter(runs=None).delete()
        arms = {arm.pk: arm for arm in experiment.arms.all()}
        for position, (key, _) in enumerate(names):
            if key in arms:
                arms[key].position, arms[key].name = position, f"\N{ZERO WIDTH SPACE}{key}"
        Arm.objects.bulk_update(arms.values(), ["position", "name"])  # names may be exchanged
        for key, name in names:
            if key in arms:
                arms[key].name = name
        Arm.objects.bulk_update(arms.values(), ["name"])


def _merge(run: Run, name: str, value: Any, *, replace: bool) -> None:
    if isinstance(value, dict):
        current = getattr(run, name)
        for key, each in value.items():
            known = current.get(key)
            if known is not None and not _equal(known, each) and not replace:
                raise Contradiction(_contradiction(run, f"{name}.{key}", known, each))
        setattr(run, name, {**current, **value})
    elif value:
        _set(run, name, value, replace=replace)
    elif value == 0 and getattr(run, name) is None:
        setattr(run, name, value)


def _set(run: Run, name: str, value: Any, *, replace: bool) -> None:
    known = getattr(run, name)
    if known and not _equal(known, value) and not replace:
        raise Contradiction(_contradiction(run, name, known, value))
    setattr(run, name, value)


def _equal(known: Any, value: Any) -> bool:
    if isinstance(known, float | int) and isinstance(value, float | int):
        return math.isclose(known, value, rel_tol=1e-12)
    return bool(known == value)


def _contradiction(run: Run, name: str, known: Any, value: Any) -> str:
    shown = "" if isinstance(known, list) else f" ({known!s:.60} and {value!s:.60})"
    return (
        f"Run {run.name} has another value of {name} already{shown}. Give the run another name, or "
        "replace its values."
    )
