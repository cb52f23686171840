"""Reassignment of flags to other cases: the owner or the name of a job may be known late."""

from __future__ import annotations

from collections import defaultdict
from copy import copy
from typing import TYPE_CHECKING

from ioportal.findings.cases import case_lifecycle
from ioportal.findings.models import Case, CaseEvent, Flag, case_joined
from ioportal.rules.rule import Subject

if TYPE_CHECKING:
    import polars as pl

    from ioportal.findings.cases.case_lifecycle import CaseKey

_REASON = "The owner or name of its jobs changed."


def reassign(jobs: pl.DataFrame) -> None:
    """Move all flags of jobs to the cases of the jobs' current owners and applications.

    A case that moves as a whole keeps its address, history and triage. A part of a case takes the
    triage along. A case that is left empty joins the case of its flags.

    Args:
        jobs: columns subject, owner and application, as evidence has them.
    """
    current = {
        subject: (owner or "", application or "")
        for subject, owner, application in jobs.select("subject", "owner", "application").rows()
    }
    flags = Flag.objects.filter(subject_kind=Subject.JOB, job__in=list(map(int, current)))
    moving: dict[CaseKey, list[Flag]] = defaultdict(list)
    for flag in flags.select_related("case").order_by("until", "pk"):
        owner, application = current[flag.subject]
        if (flag.case.subject, flag.case.application) != (owner, application):
            flag.owner = owner
            moving[case_lifecycle.key_of(flag, application)].append(flag)
    if moving:
        _move(moving)


def _move(moving: dict[CaseKey, list[Flag]]) -> None:
    latest = {flag.case_id: key for key, flags in moving.items() for flag in flags}  # by origin
    origins = Case.objects.order_by("pk").select_for_update().in_bulk(latest)
    targets = case_lifecycle.locked(moving)
    remaining = Flag.objects.filter(case__in=latest).exclude(
        pk__in=[flag.pk for flags in moving.values() for flag in flags]
    )
    continuing = {flag.case_id for flag in remaining}
    in_use = continuing | {case.pk for case in targets.values()}
    for key, flags in moving.items():
        if key not in targets:
            targets[key] = _renamed(origins[flags[-1].case_id], key, flags[-1].owner, in_use)
            in_use.add(targets[key].pk)
        for flag in flags:
            flag.case = targets[key]
    moved = [flag for flags in moving.values() for flag in flags]
    Flag.objects.bulk_update(moved, ["owner", "case"])
    for emptied in latest.keys() - in_use:
        _join(origins[emptied], targets[latest[emptied]])
    changed = {case.pk for case in targets.values()} | continuing
    CaseEvent.objects.bulk_create(
        CaseEvent(case_id=case, kind=CaseEvent.Kind.MOVED, text=_REASON) for case in sorted(changed)
    )
    case_lifecycle.update([*moved, *remaining], (), _REASON)


def _renamed(origin: Case, key: CaseKey, owner: str, in_use: set[int]) -> Case:
    """Return a case with the triage of another one: the case itself, unless it is in use."""
    case = copy(origin)
    for name, value in key._asdict().items():
        setattr(case, name, value)
    case.owner = owner
    if origin.pk in in_use:
        case.pk = None
        case._state.adding = True  # noqa: SLF001  (as documented by Django for copies)
    case.save()
    return case


def _join(emptied: Case, case: Case) -> None:
    """Delete a case without flags.

    Another one takes its entries by staff, its assignee, and rows of other apps about it.
    """
    CaseEvent.objects.filter(case=emptied).exclude(by="").update(case=case)
    if emptied.assignee_id:
        Case.objects.filter(pk=case.pk, assignee=None).update(assignee=emptied.assignee_id)
    case_joined.send(Case, emptied=emptied, case=case)
    emptied.delete()
