"""The tour of the demo: links that tell the story of the simulated year and of today."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple
from urllib.parse import urlencode

from django.core.cache import cache
from django.db.models import Count, Max
from django.urls import reverse
from django.utils import timezone

from ioportal.demo import centre, mailbox
from ioportal.experiments.models import Experiment
from ioportal.findings.models import Case
from ioportal.jobs.models import Job
from ioportal.telemetry.models import ImpactWindow

_WEEK_JOBS = 1_175
_MANY_OPERATIONS = 2_000_000
_COMPARED = "metadata_operations_per_node"  # metric of the charts
_LATEST = timedelta(hours=2)
_CACHED_S = 30  # searching the year takes most of a second
_BEFORE_STORM, _AFTER_STORM = timedelta(minutes=15), timedelta(minutes=1)


class Stop(NamedTuple):
    """A link of the tour.

    Args:
        title: text of the link.
        about: what its page shows.
        url: its address; "": its data is still loading.
    """

    title: str
    about: str
    url: str


class Period(NamedTuple):
    """A part of the story, shifted to the year of the demo."""

    start: datetime
    end: datetime

    @property
    def pilots(self) -> dict[str, str]:
        """The filters of the campaign's jobs in this period."""
        return {**centre.PILOTS, "start": self.start.isoformat(), "end": self.end.isoformat()}

    @property
    def started(self) -> dict[str, object]:
        """The look-ups of the campaign's jobs that started in this period."""
        return {
            "owner": centre.PILOTS["user"],
            "name": centre.PILOTS["name"],
            "started_at__gte": self.start,
            "started_at__lt": self.end,
        }


def stops() -> list[Stop]:
    """Return the links of the tour, in order, as they were up to `_CACHED_S` ago."""
    links: list[Stop] = cache.get_or_set("demo-tour", _stops, _CACHED_S) or []
    return links


def _stops() -> list[Stop]:
    crisis = _period("2017-07-06T09:50", "2017-07-06T16:00")
    heaviest = _heaviest(crisis)
    return [
        Stop(
            "The storm now",
            "Who slows down the metadata server, and by how much. A storm begins every 20 minutes.",
            _latest_storm(),
        ),
        Stop(
            "The job that does 2 million operations",
            "Its metadata operations, minute by minute, on the day of the crisis.",
            reverse("job", args=[heaviest.pk]) if heaviest else "",
        ),
        Stop(
            f"The week of {_WEEK_JOBS:,} jobs",
            "Statistics and histograms of one week of a physics campaign.",
            _week(_period("2016-10-25T00:00", "2016-11-01T00:00")),
        ),
        Stop(
            "Before and after the search-path fix",
            "The same campaign, ten days before its search paths were cleaned and ten days after.",
            _compared(
                _period("2017-08-07T08:00", "2017-08-17T08:00"),
                _period("2017-08-19T08:00", "2017-08-29T08:00"),
            ),
        ),
        Stop(
            "Changes and their dates",
            "Mitigations of the year: expectation, and the periods to compare.",
            reverse("mitigation_list"),
        ),
        Stop(
            "What an strace log shows",
            "Which entries of a job's search path cause its failed look-ups, before and after.",
            _traced(),
        ),
        Stop(
            "Who was flagged, and why",
            "The rule, its threshold, the evidence and the contact.",
            _case(),
        ),
        Stop(
            "The mail that the storm produced",
            "What its user received, a few minutes after the storm.",
            _mail(),
        ),
        Stop(
            "Is the data trustworthy",
            "What each source observed. Outside these intervals, data is missing, not zero.",
            f"{reverse('coverage')}?last=24h",
        ),
    ]


def _traced() -> str:
    """Return the address of the experiment with traced runs."""
    traced = Experiment.objects.filter(simulated=True, runs__system_calls__isnull=False)
    experiment = traced.order_by("pk").first()
    return reverse("experiment", args=[experiment.slug]) if experiment else ""


def _period(start: str, end: str) -> Period:
    """Return a part of the story, of local times, in the year of the demo."""
    first, last = (centre.shifted(datetime.fromisoformat(text)) for text in (start, end))
    return Period(first, last)


def _latest_storm() -> str:
    """Return the analysis of the latest slow interval, or the overview if there is none."""
    recent = ImpactWindow.objects.filter(start__gte=timezone.now() - _LATEST)
    latest = recent.aggregate(latest=Max("start"))["latest"]
    if latest is None:
        return reverse("overview")
    period = {
        "start": (latest - _BEFORE_STORM).isoformat(),
        "end": (latest + _AFTER_STORM).isoformat(),
    }
    return f"{reverse('impact_analysis')}?{urlencode(period)}"


def _heaviest(crisis: Period) -> Job | None:
    """Return the job of the crisis with most metadata operations."""
    many = {"statistics__metadata_operations__gte": _MANY_OPERATIONS}
    jobs = Job.objects.filter(**crisis.started, **many)
    return jobs.order_by("-statistics__metadata_operations", "pk").first()


def _week(week: Period) -> str:
    if Job.objects.filter(**week.started).count() < _WEEK_JOBS:
        return ""
    return f"{reverse('populations')}?{urlencode(week.pilots)}"


def _compared(before: Period, after: Period) -> str:
    with_statistics = Job.objects.filter(statistics__opens__isnull=False)
    if not all(with_statistics.filter(**part.started).exists() for part in (before, after)):
        return ""
    query = [("arm", urlencode(arm.pilots)) for arm in (before, after)]
    return f"{reverse('compare')}?{urlencode([*query, ('metric', _COMPARED)])}"


def _mail() -> str:
    mails = mailbox.latest()
    return reverse("received_mail", args=[mails[0].key]) if mails else ""


def _case() -> str:
    """Return the worst unresolved case: most severe, then most flags."""
    cases = Case.objects.unresolved().annotate(flag_count=Count("flags"))
    worst = cases.order_by("-severity", "-flag_count", "pk").first()
    return reverse("case", args=[worst.pk]) if worst else ""
