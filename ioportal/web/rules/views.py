"""Rules: their meaning, thresholds with their history, and back-tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from ioportal.celery import wake
from ioportal.core.stages import EVALUATE, RUN_BACK_TESTS
from ioportal.core.visible_text import visible
from ioportal.findings import back_tests
from ioportal.findings.models import BackTest, ThresholdSet
from ioportal.findings.thresholds import apply_thresholds
from ioportal.jobs.models import Job
from ioportal.rules import BY_CODE
from ioportal.web.common import exports
from ioportal.web.common.staff_only import staff_only
from ioportal.web.rules.forms import ThresholdForm, WithdrawForm
from ioportal.web.rules.page import BackTestPage, RulePage, rule_table

if TYPE_CHECKING:
    from django.http import HttpResponseBase

    from ioportal.rules.rule import Rule
    from ioportal.web.common.requests import UserRequest

_STOP_POLLING = 286  # htmx shows the response and ends its requests


@require_safe
@staff_only
def rule_list(request: UserRequest) -> HttpResponse:
    """List all rules, with their thresholds and numbers of flags."""
    return render(request, "rules/list.html", {"section": "rules", "table": rule_table()})


@require_http_methods(["GET", "HEAD", "POST"])
@staff_only
def rule(request: UserRequest, code: str) -> HttpResponseBase:
    """Show one rule; a POST tests or changes thresholds."""
    page = RulePage(_rule(code))
    form = ThresholdForm(page.rule, request.POST or None, initial=page.form_values(request.GET))
    if request.method == "POST" and form.is_valid():
        if "test" in request.POST:
            test = back_tests.request(form.back_test(request.user.get_username()))
            wake(RUN_BACK_TESTS)
            return redirect("back_test", code, test.pk)
        _apply(request, form.threshold_set(request.user.get_username()))
        return redirect("rule", code)
    return render(request, "rules/rule.html", {"section": "rules", "page": page, "form": form})


@require_POST
@staff_only
def withdraw_thresholds(request: UserRequest, code: str, pk: int) -> HttpResponse:
    """Withdraw the thresholds of a part of the site, which inherits again."""
    current = get_object_or_404(ThresholdSet.objects.filter(rule=_rule(code).code), pk=pk)
    form = WithdrawForm(request.POST)
    if ThresholdSet.objects.same_scope(current).latest("pk") != current:
        messages.error(request, "These thresholds have changed since. Check the current ones.")
    elif not form.is_valid():
        messages.error(request, "Not withdrawn: enter a reason of at most 200 characters.")
    else:
        _apply(
            request,
            ThresholdSet(
                rule=code,
                cluster=current.cluster,
                filesystem=current.filesystem,
                queue=current.queue,
                reason=form.cleaned_data["reason"],
                set_by=request.user.get_username(),
            ),
        )
    return redirect("rule", code)


@require_safe
@staff_only
@exports.accept("csv", "json")
def back_test(request: UserRequest, code: str, pk: int) -> HttpResponseBase:
    """Show the progress or the result of a back-test."""
    page = BackTestPage(_rule(code), pk)
    if exports.requested_format(request):
        return exports.response(request, f"back-test-{pk}", page.about, *page.affected.export)
    is_last_poll = "HX-Request" in request.headers and page.test.is_over
    return render(
        request,
        "rules/back_test.html",
        {"section": "rules", "page": page},
        status=_STOP_POLLING if is_last_poll else None,
    )


@require_POST
@staff_only
def stop_back_test(_request: UserRequest, code: str, pk: int) -> HttpResponse:
    """Stop a back-test; a running one ends at its next step."""
    test = get_object_or_404(BackTest, pk=pk, rule=code)
    BackTest.objects.unfinished().filter(pk=pk).update(state=BackTest.State.STOPPED)
    return redirect("back_test", code, test.pk)


def _rule(code: str) -> Rule:
    try:
        return BY_CODE[code]
    except KeyError:
        raise Http404("There is no such rule.") from None


def _apply(request: UserRequest, thresholds: ThresholdSet) -> None:
    scope = visible(thresholds.scope)
    if not apply_thresholds(thresholds):
        messages.info(request, f"No change, {scope}: these thresholds are already set.")
        return
    wake(EVALUATE)
    if thresholds.is_withdrawn:
        messages.success(request, f"Thresholds withdrawn, {scope}. Wider ones apply again.")
        return
    messages.success(request, f"Thresholds set, {scope}.")
    jobs = Job.objects.filter(cluster=thresholds.cluster, queue=thresholds.queue)
    if thresholds.queue and not jobs.exists():
        messages.warning(request, "This queue has no jobs. Check its name.")
