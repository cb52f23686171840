"""Initial values of the form that logs a mitigation: from a case, or from a query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.shortcuts import get_object_or_404
from django.utils import timezone

from ioportal.alerts import answers
from ioportal.changes.models import Mitigation
from ioportal.findings.models import Case, CaseEvent

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import HttpRequest

_FROM_QUERY = ("title", "kind", "started_at", "scope", "metric", "source")
_TITLE_LENGTH = 120
_MAX_DIGITS = 18  # of a key


def initial(request: HttpRequest, user: User) -> dict[str, Any]:
    """Return the initial values for a request.

    Args:
        request: `case` in its query is the key of a case, and `event` the key of its owner's
            answer; without them, the query has values of fields.
        user: a member of staff.
    """
    query = request.GET
    if key := _key(query.get("case", "")):
        visible = Case.objects.visible_to(user).select_related("filesystem")
        event = _key(query.get("event", ""))
        return _from_case(get_object_or_404(visible, pk=key), event, request)
    values: dict[str, Any] = {name: query[name] for name in _FROM_QUERY if query.get(name)}
    if factor := _factor(query.get("factor", "")):
        values["factor"] = factor
    return {"started_at": timezone.now().replace(microsecond=0), **values}


def _key(text: str) -> int:
    """Return a key; 0: the text is none."""
    return int(text) if text.isdecimal() and len(text) <= _MAX_DIGITS else 0


def _from_case(case: Case, event: int, request: HttpRequest) -> dict[str, Any]:
    answer = _answer(case, event)
    said = answer.text.removeprefix(answers.FIXED).strip() if answer else case.resolution
    place = f" on {case.filesystem}" if case.filesystem else ""
    about = f"Case {case.pk}: {case.title}{place}."
    at = answer.at if answer else case.resolved_at
    return {
        "title": (said.splitlines() or [case.title])[0][:_TITLE_LENGTH],
        "made_by": answer.by if answer else case.resolved_by,
        "started_at": at or timezone.now().replace(microsecond=0),
        "scope": _scope(case),
        "notes": "\n\n".join(filter(None, [about, said])),
        "links": request.build_absolute_uri(f"/cases/{case.pk}/"),
        "source": Mitigation.Source.ANSWER if answer else Mitigation.Source.CASE,
        "case_key": case.pk,
    }


def _answer(case: Case, event: int) -> CaseEvent | None:
    return case.events.filter(pk=event, kind=CaseEvent.Kind.ANSWERED).first() if event else None


def _scope(case: Case) -> str:
    """Return the jobs of a case: of its user, and with the longest part of its application name."""
    name = max(case.application.split("*"), key=len).strip()
    filters = {"user": case.owner, "name": name}
    return urlencode({key: value for key, value in filters.items() if value})


def _factor(text: str) -> float | None:
    try:
        factor = float(text)
    except ValueError:
        return None
    return factor if 0 < factor < float("inf") else None
