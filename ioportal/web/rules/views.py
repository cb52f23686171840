"""Rules: what they mean, their limits with their history, and trying limits on the past."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.db.models import Count, Max, Q
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from ioportal.analysis.rules import BY_CODE, RULES, examples
from ioportal.celery import JUDGE, RUN_BACK_TESTS, wake
from ioportal.display import visible
from ioportal.flags import backtest
from ioportal.flags.limits import put_in_force
from ioportal.flags.models import BackTest, Flag, LimitSet
from ioportal.jobs.models import Job
from ioportal.reporting.formatting import with_unit
from ioportal.web.common import exports
from ioportal.web.common.access import staff_only
from ioportal.web.rules import back_tests, thresholds
from ioportal.web.rules.forms import LimitForm, WithdrawForm

if TYPE_CHECKING:
    from django.http import HttpResponseBase

    from ioportal.analysis.rules.rule import Rule
    from ioportal.web.common.requests import UserRequest

_LISTED = 50  # of the history, and of back-tests
_TRIED_BY_DEFAULT = timedelta(days=30)
_HEADER = ("subject", "name", "owner", "value", "until", "now", "tried")
_STOP_POLLING = 286  # htmx asks no more, and shows what came


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
    rows = [
        {
            "rule": judged_by,
            "measure": (measure := judged_by.limits[judged_by.measure]),
            "limit": with_unit(everywhere.in_force.limits[judged_by.measure], measure.unit),
            "everywhere": everywhere,
            "narrower": narrower,
            "flags": counts.get(judged_by.code, {"to_triage": 0, "ever": 0}),
        }
        for judged_by in RULES
        for everywhere, *narrower in [thresholds.scopes(judged_by, sets)]
    ]
    return render(request, "rules/list.html", {"section": "flags", "rows": rows})


@require_http_methods(["GET", "HEAD", "POST"])
@staff_only
def rule(request: UserRequest, code: str) -> HttpResponseBase:
    """One rule; posted, limits are tried or set."""
    judged_by = _rule(code)
    sets = list(LimitSet.objects.filter(rule=code).select_related("cluster", "filesystem"))
    form = LimitForm(judged_by, request.POST or None, initial=_initial(request, judged_by, sets))
    if request.method == "POST" and form.is_valid():
        if "try" in request.POST:
            test = backtest.ask_for(form.back_test(request.user.get_username()))
            wake(RUN_BACK_TESTS)
            return redirect("back_test", code, test.pk)
        _put_in_force(request, form.limit_set(request.user.get_username()))
        return redirect("rule", code)
    return render(
        request,
        "rules/rule.html",
        {
            "section": "flags",
            "rule": judged_by,
            "example": examples.advice(judged_by),
            "scopes": thresholds.scopes(judged_by, _in_force(sets)),
            "parts": thresholds.PARTS[judged_by.subject],
            "history": thresholds.history(judged_by, sets)[:_LISTED],
            "tests": _with_measure(judged_by, BackTest.objects.filter(rule=code)[:_LISTED]),
            "measure": judged_by.limits[judged_by.measure],
            "form": form,
        },
    )


@require_POST
@staff_only
def withdraw_limits(request: UserRequest, code: str, pk: int) -> HttpResponse:
    """Have a part of the site judged by what the next wider part says again."""
    judged_by = _rule(code)
    one = get_object_or_404(LimitSet.objects.filter(rule=code), pk=pk)
    form = WithdrawForm(request.POST)
    if LimitSet.objects.of_place(one).latest("pk") != one:
        messages.error(request, "Somebody changed these limits meanwhile: look again.")
    elif not form.is_valid():
        messages.error(request, "Say why, in at most 200 characters: nothing was withdrawn.")
    else:
        _put_in_force(
            request,
            LimitSet(
                rule=judged_by.code,
                cluster=one.cluster,
                filesystem=one.filesystem,
                queue=one.queue,
                why=form.cleaned_data["why"],
                set_by=request.user.get_username(),
            ),
        )
    return redirect("rule", code)


@require_safe
@staff_only
@exports.offered("csv", "json")
def back_test(request: UserRequest, code: str, pk: int) -> HttpResponseBase:
    """What a back-test found, or how far it is."""
    judged_by = _rule(code)
    test = get_object_or_404(
        BackTest.objects.select_related("cluster", "filesystem"), pk=pk, rule=code
    )
    rows = back_tests.named(judged_by, test)
    if exports.asked_format(request):
        about = {"rule": code, "limits": test.limits, "start": test.start, "end": test.end}
        about |= {"state": test.state, "in_force": test.in_force, **test.counts}
        twin = ([getattr(row, name) for name in _HEADER] for row in rows)
        return exports.twin(request, f"back-test-{pk}", about, _HEADER, twin)
    is_done = test.state == BackTest.State.DONE
    meant_for = LimitSet(cluster=test.cluster, filesystem=test.filesystem, queue=test.queue)
    # (as in history: what nothing is wider than is judged by the rule's own)
    tried = (judged_by.defaults if meant_for.is_everywhere else {}) | test.limits
    return render(
        request,
        "rules/back_test.html",
        {
            "section": "flags",
            "rule": judged_by,
            "test": test,
            "scope": meant_for.scope,
            "limits": [
                (limit.title, limit.unit, test.in_force.get(name), tried.get(name))
                for name, limit in judged_by.limits.items()
            ],
            "measure": judged_by.limits[judged_by.measure],
            "judged": back_tests.judged(judged_by),
            "sentence": back_tests.sentence(judged_by, test) if is_done else "",
            "narrower": thresholds.narrower(
                meant_for, LimitSet.objects.filter(rule=code, set_at__lte=test.asked_at)
            ),
            "rows": rows,
            "is_cut": len(rows) == backtest.LISTED,
        },
        status=_STOP_POLLING if "HX-Request" in request.headers and test.is_over else None,
    )


@require_POST
@staff_only
def stop_back_test(_request: UserRequest, code: str, pk: int) -> HttpResponse:
    """Give a back-test up; the worker that is at it sees that at its next step."""
    test = get_object_or_404(BackTest, pk=pk, rule=code)
    BackTest.objects.unfinished().filter(pk=pk).update(state=BackTest.State.STOPPED)
    return redirect("back_test", code, test.pk)


def _put_in_force(request: UserRequest, limits: LimitSet) -> None:
    where = visible(limits.scope)
    if not put_in_force(limits):
        messages.info(request, f"They hold already: {where}.")
        return
    wake(JUDGE)
    if limits.is_withdrawn:
        messages.success(request, f"Withdrawn: what is said more widely holds there, {where}.")
        return
    messages.success(request, f"These limits hold now: {where}.")
    in_queue = Job.objects.filter(cluster=limits.cluster, queue=limits.queue)
    if limits.queue and not in_queue.exists():
        messages.warning(request, "No job of that queue is known yet: is its name right?")


def _in_force(sets: list[LimitSet]) -> list[LimitSet]:
    """Return the newest of each part, of sets that are newest first."""
    newest: dict[Any, LimitSet] = {}
    for one in sets:
        newest.setdefault((one.cluster_id, one.filesystem_id, one.queue), one)
    return list(newest.values())


def _with_measure(judged_by: Rule, tests: Any) -> list[tuple[BackTest, float | None]]:
    """Return back-tests, each with the limit of the rule's measure that it tried."""
    return [(test, test.limits.get(judged_by.measure)) for test in tests]


def _rule(code: str) -> Rule:
    try:
        return BY_CODE[code]
    except KeyError:
        raise Http404("There is no such rule.") from None


def _initial(request: UserRequest, judged_by: Rule, sets: list[LimitSet]) -> dict[str, Any]:
    """Return what the form shows: what a back-test tried, a part's limits, or those everywhere."""
    shown: LimitSet | BackTest
    period = None
    if pk := _number(request, "from"):
        shown = get_object_or_404(BackTest, pk=pk, rule=judged_by.code)
        period = shown.start, shown.end
    elif pk := _number(request, "like"):
        shown = get_object_or_404(LimitSet, pk=pk, rule=judged_by.code)
    else:
        everywhere = (one for one in _in_force(sets) if one.is_everywhere)
        shown = next(everywhere, LimitSet())
    start, end = period or _newest_month()
    return LimitForm.initial_of(
        shown.limits,
        cluster=shown.cluster and shown.cluster.name,
        filesystem=shown.filesystem and shown.filesystem.name,
        queue=shown.queue,
        is_on=getattr(shown, "is_on", None),
        advice=getattr(shown, "advice", ""),
        start=start,
        end=end,
    )


def _number(request: UserRequest, name: str) -> int | None:
    asked = request.GET.get(name, "")
    return int(asked) if asked.isdecimal() and len(asked) < len(str(2**63)) else None


def _newest_month() -> tuple[datetime, datetime]:
    newest = Job.objects.aggregate(newest=Max("ended_at"))["newest"] or datetime.now(UTC)
    end = newest.replace(second=0, microsecond=0) + timedelta(minutes=1)
    return end - _TRIED_BY_DEFAULT, end
