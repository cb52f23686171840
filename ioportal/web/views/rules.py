"""Rules: what they mean, their limits with their history, and trying limits on the past."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.db.models import Count, Max, Q
from django.http import Http404
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from ioportal.analysis.rules import BY_CODE, RULES
from ioportal.analysis.rules.rule import Subject
from ioportal.celery import JUDGE, RUN_BACK_TESTS, wake
from ioportal.flags.limits import Book, Place, put_in_force
from ioportal.flags.models import BackTest, Flag, LimitSet
from ioportal.jobs.models import Job
from ioportal.web import exports
from ioportal.web.access import staff_only
from ioportal.web.rule_forms import LimitForm

if TYPE_CHECKING:
    from django.http import HttpResponse, HttpResponseBase

    from ioportal.analysis.rules.rule import Rule
    from ioportal.web.requests import UserRequest

_LISTED = 50  # of the history, and of back-tests
_TRIED_BY_DEFAULT = timedelta(days=30)
_HEADER = ("subject", "name", "owner", "value", "until", "now", "tried")


@require_safe
@staff_only
def rule_list(request: UserRequest) -> HttpResponse:
    """All rules, their limits everywhere, and how many flags each has."""
    triaged = Q(state__in=[Flag.State.OPEN, Flag.State.ACKNOWLEDGED])
    counts = {
        row["rule"]: row
        for row in Flag.objects.values("rule").annotate(
            to_triage=Count("pk", filter=triaged), ever=Count("pk")
        )
    }
    sets = list(LimitSet.objects.in_force().select_related("cluster", "filesystem"))
    book = Book(sets)
    rows = [
        {
            "rule": rule,
            "limits": _limits(rule, in_force.limits),
            "is_on": in_force.is_on,
            "elsewhere": [one for one in sets if one.rule == rule.code and not one.is_everywhere],
            "flags": counts.get(rule.code, {"to_triage": 0, "ever": 0}),
        }
        for rule in RULES
        for in_force in [book.at(rule, Place())]
    ]
    return render(request, "rules/list.html", {"section": "flags", "rows": rows})


@require_http_methods(["GET", "HEAD", "POST"])
@staff_only
def rule(request: UserRequest, code: str) -> HttpResponseBase:
    """One rule; posted, limits are tried or set."""
    judged_by = _rule(code)
    form = LimitForm(judged_by, request.POST or None, initial=_initial(request, judged_by))
    if request.method == "POST" and form.is_valid():
        by = request.user.get_username()
        if "try" in request.POST:
            test = form.back_test(by)
            test.save()
            wake(RUN_BACK_TESTS)
            return redirect("back_test", code, test.pk)
        limits = form.limit_set(by)
        put_in_force(limits)
        wake(JUDGE)
        messages.success(request, f"These limits hold now: {limits.scope}.")
        return redirect("rule", code)
    history = LimitSet.objects.filter(rule=code).select_related("cluster", "filesystem")
    sets = LimitSet.objects.filter(rule=code).in_force().select_related("cluster", "filesystem")
    everywhere = Book(sets).at(judged_by, Place())
    return render(
        request,
        "rules/rule.html",
        {
            "section": "flags",
            "rule": judged_by,
            "limits": _limits(judged_by, judged_by.defaults, everywhere.limits),
            "history": history[:_LISTED],
            "tests": BackTest.objects.filter(rule=code)[:_LISTED],
            "form": form,
        },
    )


@require_safe
@staff_only
@exports.offered("csv", "json")
def back_test(request: UserRequest, code: str, pk: int) -> HttpResponseBase:
    """What a back-test found, or how far it is."""
    test = get_object_or_404(
        BackTest.objects.select_related("cluster", "filesystem"), pk=pk, rule=code
    )
    judged_by = _rule(code)
    rows = _named(judged_by, test)
    if exports.asked_format(request):
        about = {"rule": code, "limits": test.limits, "start": test.start, "end": test.end}
        about |= {"state": test.state, **test.counts}
        twin = ([row[name] for name in _HEADER] for row in rows)
        return exports.twin(request, f"back-test-{pk}", about, _HEADER, twin)
    place = Place(test.cluster_id, test.filesystem_id, test.queue or None)
    return render(
        request,
        "rules/back_test.html",
        {
            "section": "flags",
            "rule": judged_by,
            "test": test,
            "scope": LimitSet(
                cluster=test.cluster, filesystem=test.filesystem, queue=test.queue
            ).scope,
            "limits": _limits(judged_by, Book().at(judged_by, place).limits, test.limits),
            "measure": judged_by.limits[judged_by.measure],
            "rows": rows,
        },
    )


def _limits(judged_by: Rule, *sets: dict[str, float]) -> list[tuple[Any, ...]]:
    """Return each limit's title and unit, and its value in each of some sets."""
    return [
        (limit.title, limit.unit, *(one.get(name) for one in sets))
        for name, limit in judged_by.limits.items()
    ]


def _rule(code: str) -> Rule:
    try:
        return BY_CODE[code]
    except KeyError:
        raise Http404("There is no such rule.") from None


def _initial(request: UserRequest, judged_by: Rule) -> dict[str, Any]:
    """Return what the form shows: what a back-test tried, or what holds everywhere."""
    asked = request.GET.get("from", "")
    if asked.isdecimal() and len(asked) < len(str(2**63)):
        test = get_object_or_404(BackTest, pk=int(asked), rule=judged_by.code)
        return LimitForm.initial_of(
            test.limits,
            cluster=test.cluster and test.cluster.name,
            filesystem=test.filesystem and test.filesystem.name,
            queue=test.queue,
            is_on=True,
            start=test.start,
            end=test.end,
        )
    in_force = Book().at(judged_by, Place())
    newest = Job.objects.aggregate(newest=Max("ended_at"))["newest"] or datetime.now(UTC)
    end = newest.replace(second=0, microsecond=0) + timedelta(minutes=1)
    return LimitForm.initial_of(
        in_force.limits,
        is_on=in_force.is_on,
        advice="" if in_force.advice == judged_by.advice else in_force.advice,
        start=end - _TRIED_BY_DEFAULT,
        end=end,
    )


def _named(judged_by: Rule, test: BackTest) -> list[dict[str, Any]]:
    """Return what was found, with the jobs' names."""
    rows: list[dict[str, Any]] = test.found
    jobs: dict[int, Job] = {}
    if judged_by.subject is Subject.JOB:
        jobs = Job.objects.in_bulk([int(row["subject"]) for row in rows])
    return [
        {
            **row,
            "until": datetime.fromisoformat(row["until"]),
            "job": (job := jobs.get(int(row["subject"])) if jobs else None),
            "name": f"{job.batch_id} {job.name}".strip() if job else row["subject"],
        }
        for row in rows
    ]
