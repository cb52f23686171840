"""The loads that a URL names: runs, an experiment, jobs, a population, or plain numbers."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from django.db.models import Avg, Count, ExpressionWrapper, F, FloatField
from django.db.models.functions import NullIf

from ioportal.core.visible_text import storable
from ioportal.experiments.analysis.latency_model import Load
from ioportal.experiments.models import Experiment, Run
from ioportal.jobs.models import Job
from ioportal.web.common.selection import SelectedJobs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.contrib.auth.models import User
    from django.http import QueryDict


def run_load(run: Run) -> Load | None:
    """Return reads and bytes of a run, with its time in reads; None: they are unknown."""
    operations, size = run.metrics.get("read_operations"), run.metrics.get("read_bytes")
    if operations is None or size is None or min(operations, size) < 0:
        return None
    return Load(run.name, operations, size, run.metrics.get("read_s"))


def _transfers(kind: str) -> Any:
    """Return the requests of a job to read or write: bytes / mean size; null: unknown."""
    size, mean = F(f"statistics__{kind}_bytes"), F(f"statistics__mean_{kind}_bytes")
    return ExpressionWrapper(size / NullIf(mean, 0.0), FloatField())


def population_load(name: str, jobs: Any) -> tuple[Load, int] | None:
    """Return the mean per node of jobs with known statistics, and their number; None: none has.

    Operations are metadata operations, and requests to read and to write. Nodes are taken to work
    at the same time, so that a job's share per node counts.

    Args:
        name: of the population.
        jobs: a QuerySet of batch jobs.
    """
    known = jobs.order_by().filter(
        statistics__metadata_operations__isnull=False,
        statistics__read_bytes__isnull=False,
        statistics__write_bytes__isnull=False,
        statistics__node_count__gt=0,
    )
    nodes = F("statistics__node_count")
    means = known.annotate(
        metadata=ExpressionWrapper(
            1.0 * F("statistics__metadata_operations") / nodes, FloatField()
        ),
        reads=ExpressionWrapper(_transfers("read") / nodes, FloatField()),
        writes=ExpressionWrapper(_transfers("write") / nodes, FloatField()),
        transferred=ExpressionWrapper(
            1.0 * (F("statistics__read_bytes") + F("statistics__write_bytes")) / nodes, FloatField()
        ),
    ).aggregate(
        Avg("metadata"), Avg("reads"), Avg("writes"), Avg("transferred"), number=Count("pk")
    )
    if not means["number"]:
        return None
    operations = sum(means[f"{part}__avg"] or 0.0 for part in ("metadata", "reads", "writes"))
    return Load(name, operations, means["transferred__avg"]), means["number"]


def job_load(job: Job) -> Load | None:
    """Return the load of a job per node; None: its statistics are unknown."""
    found = population_load(f"job {job.display_id}", Job.objects.filter(pk=job.pk))
    return found and found[0]


OPERATIONS, MIB, CLAIMED = "operations", "mib", "claimed_s"  # parameters
_MEBIBYTE = 2**20
_EXAMPLE = Load("example", 60_000, 500 * _MEBIBYTE)
_MOST_LOADS = 200
_MOST_KEYS = 50  # of runs and jobs in the URL
_KEY = re.compile(r"\d{1,18}", re.ASCII)  # fits into 64 bits
_LEAST, _LARGEST = 1e-6, 1e15
_NAMES_SHOWN = 5
_PER_NODE = (
    "Jobs: metadata operations and requests per node, as if the processes of a node waited for "
    "each other and nodes worked at the same time."
)


class Numbers:
    """Numbers of a URL; `errors` has the invalid ones, which are ignored."""

    def __init__(self, query: QueryDict) -> None:
        self._query = query
        self.errors: list[str] = []

    def read(self, name: str, *, is_positive: bool = False) -> float | None:
        """Return a number of the URL; None if it is missing or invalid."""
        text = self._query.get(name, "").strip()
        if not text:
            return None
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not (_LEAST if is_positive else 0) <= number <= _LARGEST:
            self.errors.append(f"{name} {text[:64]!r} is not a usable number. Ignored.")
            return None
        return number


class SelectedLoads:
    """The loads of a URL, as far as a user may see them."""

    def __init__(self, user: User, query: QueryDict, numbers: Numbers) -> None:
        self._user = user
        self.query = query
        self._numbers = numbers
        self.errors: list[str] = []
        self.notes: list[str] = []
        self.is_simulated = False
        self.loads = self._loads()

    def _loads(self) -> list[Load]:
        loads = [*self._runs(), *self._jobs(), *self._population(), *self._plain()]
        if len(loads) > _MOST_LOADS:
            self.notes.append(f"The first {_MOST_LOADS} of {len(loads):,} loads are used.")
        if not loads and not self.errors:
            self.notes.append(
                "An example. Enter operations and size, or open this page from a run, an "
                "experiment, a job or a population."
            )
        return loads[:_MOST_LOADS] or [_EXAMPLE]

    def _runs(self) -> Iterator[Load]:
        experiments = Experiment.objects.visible_to(self._user)
        slug = storable(self.query.get("experiment", ""))
        runs = Run.objects.filter(experiment__in=experiments).select_related("experiment")
        selected = [*runs.filter(pk__in=self._keys("run"))]
        if slug:
            of_experiment = list(runs.filter(experiment__slug=slug))
            if not of_experiment:
                self.errors.append(f"Experiment {slug[:64]!r} has no visible runs.")
            selected += of_experiment
        self._report_missing("run", {run.pk for run in selected})
        self.is_simulated |= any(run.experiment.simulated for run in selected)
        unknown = []
        for run in dict.fromkeys(selected):
            if load := run_load(run):
                yield load
            else:
                unknown.append(run.name)
        if unknown:
            shown = ", ".join(unknown[:_NAMES_SHOWN])
            self.notes.append(f"{len(unknown):,} runs without reads and bytes, such as {shown}.")

    def _jobs(self) -> Iterator[Load]:
        visible = Job.objects.visible_to(self._user).select_related("cluster")
        jobs = list(visible.filter(pk__in=self._keys("job")))
        self._report_missing("job", {job.pk for job in jobs})
        for job in jobs:
            self.is_simulated |= job.cluster.simulated
            if load := job_load(job):
                yield load
            else:
                self.errors.append(f"Job {job.display_id} has no known operations and bytes.")
        if jobs:
            self.notes.append(_PER_NODE)

    def _population(self) -> Iterator[Load]:
        selected = SelectedJobs(self._user, self.query)
        if not selected.is_valid:
            self.errors += [
                f"{name}: {error}"
                for name, errors in selected.filter.errors.items()
                for error in errors
            ]
        elif filters := selected.active_filters or self.query.get("last"):
            name = (
                ", ".join(f"{label} {value}" for label, value in selected.active_filters)
                if isinstance(filters, list)
                else "all jobs"
            )
            found = population_load(name, selected.filtered)
            if found is None:
                self.errors.append("No job of the population has known operations and bytes.")
                return
            load, number = found
            self.is_simulated |= selected.simulated
            self.notes += [f"Population: mean of {number:,} jobs.", _PER_NODE]
            yield load

    def _plain(self) -> Iterator[Load]:
        operations, mib = self._numbers.read(OPERATIONS), self._numbers.read(MIB)
        if operations is not None or mib is not None:
            yield Load("entered", operations or 0.0, (mib or 0.0) * _MEBIBYTE)

    def _keys(self, name: str) -> list[int]:
        """Return the keys of a parameter that may be repeated."""
        texts = self.query.getlist(name)[:_MOST_KEYS]
        return [int(text) for text in texts if _KEY.fullmatch(text)]

    def _report_missing(self, name: str, found: set[int]) -> None:
        known = {str(key) for key in found}
        self.errors += [
            f"{name.capitalize()} {text[:64]!r} is not visible or does not exist."
            for text in self.query.getlist(name)[:_MOST_KEYS]
            if text and text.lstrip("0") not in known
        ]
