"""Loads a labelled set as a stream, and collects the flags."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection

from bench import portal
from bench.flag_quality.blame import Blame, Sighting, blame, sighting
from bench.flag_quality.exports import ExportReads
from ioportal.findings import evaluation, observation_stage, slow_servers
from ioportal.findings.models import Flag
from ioportal.jobs import statistics
from ioportal.rules.rule import Severity
from ioportal.telemetry import rollups
from ioportal.telemetry.stage_runs import drain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from ioportal.load.top_consumers import PrincipalKey


@dataclass(frozen=True)
class Inputs:
    """Inputs in addition to job_stats, md_stats and accounting."""

    exports: bool = True
    services: bool = True
    traces: bool = True


@dataclass(frozen=True)
class Named:
    """Who was named in a stream.

    Args:
        flags: all flags except suppressed ones.
        observed: subjects that pages showed as under observation.
    """

    flags: list[Blame]
    observed: list[Sighting]


_Seen = tuple[int, bool]  # a flag; whether it accuses: from severity warning on
_CLUSTER = "rhea"
_COUNTERS = ("job_stats", "md_stats")
_TRACE, _SERVICES = "rpctrace", "mds_stats"


def named(folder: Path, truth: dict[str, Any], template: str, inputs: Inputs) -> Named:
    """Load a set into a copy of an empty database; return who was named."""
    with portal.copied_database(template):
        settings.STATISTICS_INTERVAL = timedelta(0)
        with connection.cursor() as cursor:
            cursor.execute("SET synchronous_commit TO off")  # no crash is tested here
        portal.register((folder / "site.toml").read_text())
        first_seen, observed = _stream(folder, truth, inputs)
        all_flags = Flag.objects.filter(pk__in={pk for pk, _ in first_seen}).select_related("job")
        sightings = (sighting(principal, time) for principal, time in observed.items())
        return Named(
            [_blame(flag, first_seen) for flag in all_flags], [each for each in sightings if each]
        )


def _stream(
    folder: Path, truth: dict[str, Any], inputs: Inputs
) -> tuple[dict[_Seen, datetime], dict[PrincipalKey, datetime]]:
    """Load the history and all steps; return flags and observed principals with their first time.

    The pages of staff show the latter.
    """
    server, start = truth["server"], datetime.fromisoformat(truth["start"])
    exports = ExportReads(truth["exports"])
    if inputs.exports:
        exports.send(folder / "before" / "exports.txt", start)
    _load_history(folder / "before", server, inputs)
    _evaluate()
    first_seen = dict.fromkeys(_flagged(), start)
    observed: dict[PrincipalKey, datetime] = {}
    staff = User(is_staff=True)
    steps = sorted((folder / "slices").iterdir())
    for step in steps:
        end = datetime.fromisoformat(json.loads((step / "slice.json").read_text())["end"])
        _load_step(step, end, server, inputs)
        if inputs.exports and (polled := step / "exports.txt").exists():
            exports.send(polled, end)
        observation_stage.observe(end)
        for shown in slow_servers.current(staff, end):
            for subject in shown.subjects:
                observed.setdefault(subject.principal, end)
        _evaluate()
        for flag in _flagged():
            first_seen.setdefault(flag, end)
    return first_seen, observed


def _load_history(before: Path, server: str, inputs: Inputs) -> None:
    _ingest("sacct", [before / "sacct.txt"], cluster=_CLUSTER)
    for form in _COUNTERS:
        _ingest(form, sorted((before / form).iterdir()))
    if inputs.services:
        _ingest(_SERVICES, sorted((before / _SERVICES).iterdir()), server=server)
    if inputs.traces:
        _ingest(_TRACE, [before / "rpctrace.log.zst"], server=server)


def _load_step(step: Path, end: datetime, server: str, inputs: Inputs) -> None:
    for form in ("sacct", "squeue"):
        if (text := step / f"{form}.txt").exists():
            _ingest(form, [text], cluster=_CLUSTER)
    for form in _COUNTERS:
        _ingest(form, [step / f"{form}.txt"], at=end.isoformat())
    if inputs.services:
        _ingest(_SERVICES, [step / f"{_SERVICES}.txt"], server=server, at=end.isoformat())
    if inputs.traces:
        _ingest(_TRACE, [step / "rpctrace.log"], server=server)


def _ingest(form: str, files: Iterable[Path], **options: str) -> None:
    arguments = [f"--{name}={value}" for name, value in options.items()]
    quiet = io.StringIO()
    call_command("ingest", form, *map(str, files), "--json", *arguments, stdout=quiet, stderr=quiet)


def _evaluate() -> None:
    drain(statistics.refresh_statistics)
    drain(rollups.roll_up)
    drain(evaluation.evaluate_pending)
    evaluation.evaluate_current()


def _flagged() -> Iterator[_Seen]:
    flags = Flag.objects.filter(suppression_reasons=[]).values_list("pk", "severity")
    for pk, severity in flags:
        yield pk, severity >= Severity.WARNING


def _blame(flag: Flag, first_seen: dict[_Seen, datetime]) -> Blame:
    """Return a flag as an accusation from its first warning on; else as a notice."""
    accused = first_seen.get((flag.pk, True))
    return blame(flag, accused or first_seen[flag.pk, False], is_accusation=accused is not None)
