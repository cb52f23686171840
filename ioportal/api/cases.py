"""``GET /api/v1/cases/events/``: events of cases after a given event (docs/api.md)."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.utils import timezone
from ninja import Query, Router, Schema
from pydantic import Field

from ioportal.api.authentication import READER, reader
from ioportal.api.problems import problems
from ioportal.api.responses import answer, json_response
from ioportal.findings.cases.case_texts import facts, public_events, summaries, with_places
from ioportal.findings.models import Case, CaseEvent

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import HttpRequest, HttpResponse

# Events commit in another order than their numbers: a younger one may still be missing.
SETTLED = timedelta(seconds=10)
_HIGHEST = (1 << 63) - 1

router = Router(tags=["Cases"])


class Position(Schema):
    """A part of the feed."""

    after: int = Field(0, ge=0, le=_HIGHEST, description="Number of the last event that is known")
    limit: int = Field(100, ge=1, le=1_000, description="At most so many events")


@router.get(
    "/events/",
    auth=READER,
    summary="Events of cases",
    response=problems(),
    openapi_extra=answer(
        "Events, oldest first",
        {
            "events": [
                {
                    "id": 912,
                    "at": "2017-08-18T13:46:00Z",
                    "kind": "opened",
                    "by": "",
                    "text": "",
                    "case": {"url": "https://io.example.org/cases/7/", "owner": "alice"},
                }
            ],
            "next": 912,
            "has_more": False,
        },
    ),
)
def events(request: HttpRequest, position: Query[Position]) -> HttpResponse:
    """Return events after a number, oldest first, each with its case as it is now.

    `next` is the parameter `after` of the next request. Events are at least ten seconds old.
    """
    user = reader(request)
    settled = CaseEvent.objects.filter(at__lt=timezone.now() - SETTLED, pk__gt=position.after)
    visible = settled.filter(case__in=Case.objects.visible_to(user)).filter(public_events(user))
    found = list(visible.order_by("pk")[: position.limit])
    cases = _cases(user, {event.case_id for event in found})
    return json_response(
        {
            "events": [
                {
                    "id": event.pk,
                    "at": event.at,
                    "kind": event.kind,
                    "by": event.by,
                    "text": event.text,
                    "case": cases.get(event.case_id),
                }
                for event in found
            ],
            "next": found[-1].pk if found else position.after,
            "has_more": len(found) == position.limit,
        }
    )


def _cases(user: User, keys: set[int]) -> dict[int, dict[str, Any]]:
    cases = with_places(Case.objects.visible_to(user).filter(pk__in=keys))
    return {
        summary.case.pk: {
            "url": f"{settings.PORTAL_URL}{summary.address}",
            **facts(summary, user),
        }
        for summary in summaries(cases, user)
    }
