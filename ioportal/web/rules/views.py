"""Rules: what they mean, their thresholds with their history, and trying thresholds on the past."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.db.models import Count, Max, Q
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from ioportal.analysis.rules import BY_CODE, RULES, examples
from ioportal.celery import EVALUATE, RUN_BACK_TESTS, wake
from ioportal.display import visible
from ioportal.flags import backtest
from ioportal.flags.models import BackTest, Flag, ThresholdSet
from ioportal.flags.thresholds import apply_thresholds
from ioportal.jobs.models import Job
from ioportal.reporting.formatting import with_unit
from ioportal.web.common import exports
from ioportal.web.common.access import staff_only
from ioportal.web.rules import back_tests, thresholds
from ioportal.web.rules.forms import ThresholdForm, WithdrawForm

if TYPE_CHECKING:
    from django.http import HttpResponseBase

    from ioportal.analysis.rules.rule import Rule
    from ioportal.web.common.requests import UserRequest

_LISTED = 50  # of the history, and of back-tests
_TRIED_BY_DEFAULT = timedelta(days=30)
_HEADER = ("subject", "name", "owner", "value", "until", "current", "proposed")
_STOP_POLLING = 286  # htmx asks no more, and shows what came


@require_safe
@staff_only
def rule_list(request: UserRequest) -> HttpResponse:
    """All rules, their thresholds everywhere, and how many flags each has."""
    triaged = Q(state__in=[Flag.State.OPEN, Flag.State.ACKNOWLEDGED])
    counts = {
        row["rule"]: row
        for row in Flag.objects.values("rule").annotate(
            to_triage=Count("pk", filter=triaged), ever=Count("pk")
        )
    }
    sets = list(ThresholdSet.objects.current().select_related("cluster", "filesystem"))
    rows = [
        {
            "rule": definition,
            "measure": (measure := definition.thresholds[definition.measure]),
            "threshold": with_unit(
                everywhere.effective.thresholds[definition.measure], measure.unit
            ),
            "everywhere": everywhere,
            "narrower": narrower,
            "flags": counts.get(definition.code, {"to_triage": 0, "ever": 0}),
        }
        for definition in RULES
        for everywhere, *narrower in [thresholds.scopes(definition, sets)]
    ]
    return render(request, "rules/list.html", {"section": "flags", "rows": rows})


@require_http_methods(["GET", "HEAD", "POST"])
@staff_only
def rule(request: UserRequest, code: str) -> HttpResponseBase:
    """One rule; posted, thresholds are tried or set."""
    definition = _rule(code)
    sets = list(ThresholdSet.objects.filter(rule=code).select_related("cluster", "filesystem"))
    form = ThresholdForm(
        definition, request.POST or None, initial=_initial(request, definition, sets)
    )
    if request.method == "POST" and form.is_valid():
        if "try" in request.POST:
            test = backtest.request(form.back_test(request.user.get_username()))
            wake(RUN_BACK_TESTS)
            return redirect("back_test", code, test.pk)
        _apply(request, form.threshold_set(request.user.get_username()))
        return redirect("rule", code)
    return render(
        request,
        "rules/rule.html",
        {
            "section": "flags",
            "rule": definition,
            "example": examples.advice(definition),
            "scopes": thresholds.scopes(definition, _current(sets)),
            "parts": thresholds.PARTS[definition.subject],
            "history": thresholds.history(definition, sets)[:_LISTED],
            "tests": _with_measure(definition, BackTest.objects.filter(rule=code)[:_LISTED]),
            "measure": definition.thresholds[definition.measure],
            "form": form,
        },
    )


@require_POST
@staff_only
def withdraw_thresholds(request: UserRequest, code: str, pk: int) -> HttpResponse:
    """Have a part of the site judged by what the next wider part says again."""
    definition = _rule(code)
    one = get_object_or_404(ThresholdSet.objects.filter(rule=code), pk=pk)
    form = WithdrawForm(request.POST)
    if ThresholdSet.objects.same_scope(one).latest("pk") != one:
        messages.error(request, "Somebody changed these thresholds meanwhile: look again.")
    elif not form.is_valid():
        messages.error(request, "Say why, in at most 200 characters: nothing was withdrawn.")
    else:
        _apply(
            request,
            ThresholdSet(
                rule=definition.code,
                cluster=one.cluster,
                filesystem=one.filesystem,
                queue=one.queue,
                reason=form.cleaned_data["why"],
                set_by=request.user.get_username(),
            ),
        )
    return redirect("rule", code)


@require_safe
@staff_only
@exports.accept("csv", "json")
def back_test(request: UserRequest, code: str, pk: int) -> HttpResponseBase:
    """What a back-test found, or how far it is."""
    definition = _rule(code)
    test = get_object_or_404(
        BackTest.objects.select_related("cluster", "filesystem"), pk=pk, rule=code
    )
    rows = back_tests.named(definition, test)
    if exports.requested_format(request):
        about = {"rule": code, "thresholds": test.thresholds, "start": test.start, "end": test.end}
        about |= {"state": test.state, "current_thresholds": test.current_thresholds, **test.counts}
        twin = ([getattr(row, name) for name in _HEADER] for row in rows)
        return exports.response(request, f"back-test-{pk}", about, _HEADER, twin)
    is_done = test.state == BackTest.State.DONE
    meant_for = ThresholdSet(cluster=test.cluster, filesystem=test.filesystem, queue=test.queue)
    # (as in history: what nothing is wider than is judged by the rule's own)
    tried = (definition.defaults if meant_for.is_everywhere else {}) | test.thresholds
    return render(
        request,
        "rules/back_test.html",
        {
            "section": "flags",
            "rule": definition,
            "test": test,
            "scope": meant_for.scope,
            "thresholds": [
                (
                    threshold.title,
                    threshold.unit,
                    test.current_thresholds.get(name),
                    tried.get(name),
                )
                for name, threshold in definition.thresholds.items()
            ],
            "measure": definition.thresholds[definition.measure],
            "judged": back_tests.judged(definition),
            "sentence": back_tests.sentence(definition, test) if is_done else "",
            "narrower": thresholds.narrower(
                meant_for, ThresholdSet.objects.filter(rule=code, set_at__lte=test.requested_at)
            ),
            "rows": rows,
            "is_cut": len(rows) == backtest.MAX_LISTED,
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


def _apply(request: UserRequest, thresholds: ThresholdSet) -> None:
    where = visible(thresholds.scope)
    if not apply_thresholds(thresholds):
        messages.info(request, f"They hold already: {where}.")
        return
    wake(EVALUATE)
    if thresholds.is_withdrawn:
        messages.success(request, f"Withdrawn: what is said more widely holds there, {where}.")
        return
    messages.success(request, f"These thresholds hold now: {where}.")
    in_queue = Job.objects.filter(cluster=thresholds.cluster, queue=thresholds.queue)
    if thresholds.queue and not in_queue.exists():
        messages.warning(request, "No job of that queue is known yet: is its name right?")


def _current(sets: list[ThresholdSet]) -> list[ThresholdSet]:
    """Return the newest of each part, of sets that are newest first."""
    newest: dict[Any, ThresholdSet] = {}
    for one in sets:
        newest.setdefault((one.cluster_id, one.filesystem_id, one.queue), one)
    return list(newest.values())


def _with_measure(definition: Rule, tests: Any) -> list[tuple[BackTest, float | None]]:
    """Return back-tests, each with the threshold of the rule's measure that it tried."""
    return [(test, test.thresholds.get(definition.measure)) for test in tests]


def _rule(code: str) -> Rule:
    try:
        return BY_CODE[code]
    except KeyError:
        raise Http404("There is no such rule.") from None


def _initial(request: UserRequest, definition: Rule, sets: list[ThresholdSet]) -> dict[str, Any]:
    """Return initial form values: of a back-test, of a threshold set, or of the whole site."""
    shown: ThresholdSet | BackTest
    period = None
    if pk := _number(request, "from"):
        shown = get_object_or_404(BackTest, pk=pk, rule=definition.code)
        period = shown.start, shown.end
    elif pk := _number(request, "like"):
        shown = get_object_or_404(ThresholdSet, pk=pk, rule=definition.code)
    else:
        everywhere = (one for one in _current(sets) if one.is_everywhere)
        shown = next(everywhere, ThresholdSet())
    start, end = period or _newest_month()
    return ThresholdForm.initial_of(
        shown.thresholds,
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
