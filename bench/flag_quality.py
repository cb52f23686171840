"""Precision and recall of the rules: ``python -m bench flag-quality --seed N``.

The simulator's labelled set is loaded as a stream, in steps of ten seconds, by the real collectors
and stages. Flags and their times are compared with the injected causes. Jobs' figures are computed
once per minute of the stream, as in a portal.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from django.conf import settings
from django.core.management import call_command
from django.db import connection

from bench import portal
from bench.figures import say
from ioportal.analysis.rules import RULES
from ioportal.analysis.rules.rule import Subject
from ioportal.flags import evaluation
from ioportal.flags.models import Flag
from ioportal.jobs import statistics
from ioportal.site.models import Filesystem, Nid, SourceJobId
from ioportal.stage_runs import drain
from ioportal.telemetry import rollups
from ioportal.telemetry.models import Principal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_DATABASE = "ioportal_flag_quality"
_RESULT = settings.BASE_DIR / "var" / "flag-quality.json"
_CLUSTER = "rhea"
_FIGURES_EVERY = 6  # steps
_COUNTS_FAILURES_UNTIL = (2, 13)
# Cause for each rule; the names on the right are the simulator's.
_CAUSES = {
    "impact": "harm",
    "metadata-operations": "too many operations",
    "metadata-rate": "sustained rate per node",
    "startup-storm": "start-up storm",
    "stat-storm": "stat storm",
    "create-unlink-churn": "create/unlink churn",
    "open-close-imbalance": "failed look-ups",
    "unexplained-enqueues": "failed look-ups",
    "lock-contention": "lock contention",
    "small-reads": "small reads",
    "small-writes": "small writes",
    "reads-above-usual": "reads far above similar jobs",
    "outlier": "outlier",
    "low-cpu-efficiency": "idle processors with heavy I/O",
    "campaign": "campaign",
    "host-outside-jobs": "host outside any job",
    "unattributed": "unattributed share",
}
_KINDS = {
    "job": Subject.JOB,
    "user": Subject.USER,
    "host": Subject.HOST,
    "process": Subject.HOST,
    "filesystem": Subject.FILESYSTEM,
}

Who = tuple[Subject, str]


@dataclass
class Tally:
    """Results of a rule."""

    detected: int = 0
    missed: int = 0
    false: int = 0
    borderline_found: int = 0
    borderline: int = 0
    delays_s: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    @property
    def precision(self) -> float | None:
        """Share of abuse among its flags."""
        flagged = self.detected + self.false
        return self.detected / flagged if flagged else None

    @property
    def recall(self) -> float | None:
        """Share of the abuse that it flagged."""
        abuse = self.detected + self.missed
        return self.detected / abuse if abuse else None

    @property
    def delay_p95_s(self) -> float | None:
        """From onset to flag, in the stream's time."""
        return float(np.percentile(self.delays_s, 95)) if self.delays_s else None

    def __add__(self, other: Tally) -> Tally:
        return Tally(**{name: getattr(self, name) + getattr(other, name) for name in vars(self)})


def measure(seed: int) -> None:
    """Write a set, load it, and report the quality of the flags."""
    with tempfile.TemporaryDirectory() as scratch, portal.empty_database(_DATABASE):
        folder = Path(scratch) / "cases"
        say(f"writing the labelled set of seed {seed}")
        subprocess.run(
            [sys.executable, "-m", "simulator", "cases", "--seed", str(seed), str(folder)],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        truth = json.loads((folder / "truth.json").read_text())
        flagged = _stream(folder, truth)
    tallies = _compared(truth, flagged)
    _show(tallies)
    _RESULT.parent.mkdir(exist_ok=True)
    _RESULT.write_text(json.dumps({"seed": seed, **_summary(tallies)}, indent=1))


def _stream(folder: Path, truth: dict[str, Any]) -> dict[tuple[str, Who], datetime]:
    """Load the stream; return flags by rule and subject, with their first time in the stream."""
    settings.STATISTICS_INTERVAL = timedelta(0)
    with connection.cursor() as cursor:
        cursor.execute("SET synchronous_commit TO off")  # no crash is tested here
    portal.register((folder / "site.toml").read_text())
    servers = {entry["name"]: entry["server"] for entry in truth["filesystems"]}
    say("loading the history")
    _load_history(folder / "before", servers)
    _evaluate(with_figures=True)
    begun = datetime.fromisoformat(truth["start"])
    flagged = dict.fromkeys(_flagged(), begun)
    steps = sorted((folder / "slices").iterdir())
    for n, step in enumerate(steps, start=1):
        end = datetime.fromisoformat(json.loads((step / "slice.json").read_text())["end"])
        _load_step(step, end, servers)
        _evaluate(with_figures=n % _FIGURES_EVERY == 0 or n == len(steps))
        for flag in _flagged():
            flagged.setdefault(flag, end)
        if n % 30 == 0:
            say(f"step {n} of {len(steps)}: {len(flagged)} flagged")
    return flagged


def _load_history(before: Path, servers: dict[str, str]) -> None:
    _ingest("sacct", [before / "sacct.txt"], cluster=_CLUSTER)
    for form in ("job_stats", "md_stats"):
        for reads in sorted(before.glob(f"{form}-*")):
            _ingest(form, sorted(reads.iterdir()))
    for trace in sorted(before.glob("rpctrace-*")):
        name = trace.name.removeprefix("rpctrace-").removesuffix(".log.zst")
        _ingest("rpctrace", [trace], server=servers[name])


def _load_step(step: Path, end: datetime, servers: dict[str, str]) -> None:
    for form in ("sacct", "squeue"):
        if (text := step / f"{form}.txt").exists():
            _ingest(form, [text], cluster=_CLUSTER)
    for form in ("job_stats", "md_stats"):
        if texts := sorted(step.glob(f"{form}-*.txt")):
            _ingest(form, texts, at=end.isoformat())
    for text in sorted(step.glob("rpctrace-*.log")):
        name = text.name.removeprefix("rpctrace-").removesuffix(".log")
        _ingest("rpctrace", [text], server=servers[name])


def _ingest(form: str, files: Iterable[Path], **options: str) -> None:
    flags = [f"--{name}={value}" for name, value in options.items()]
    quiet = io.StringIO()
    call_command("ingest", form, *map(str, files), "--json", *flags, stdout=quiet, stderr=quiet)


def _evaluate(*, with_figures: bool) -> None:
    if with_figures:
        drain(statistics.refresh_statistics)
    drain(rollups.roll_up)
    drain(evaluation.evaluate_pending)
    evaluation.evaluate_current()


def _flagged() -> Iterator[tuple[str, Who]]:
    """Yield all flags so far, except suppressed ones."""
    flags = Flag.objects.filter(suppression_reasons=[]).select_related("job")
    for flag in flags:
        yield flag.rule, (Subject(flag.subject_kind), _name(flag))


def _name(flag: Flag) -> str:
    if flag.job:
        return flag.job.batch_id
    if flag.subject_kind == Subject.HOST:
        kind, _, which = flag.subject.partition(":")
        is_host = int(kind) == Principal.HOST
        return str((Nid if is_host else SourceJobId).objects.get(pk=which))
    if flag.subject_kind == Subject.FILESYSTEM:
        return Filesystem.objects.get(pk=flag.subject).name
    return flag.subject


def _compared(truth: dict[str, Any], flagged: dict[tuple[str, Who], datetime]) -> dict[str, Tally]:
    versions = {
        entry["name"]: tuple(map(int, entry["version"].split(".")[:2]))
        for entry in truth["filesystems"]
    }
    tallies: dict[str, Tally] = defaultdict(Tally)
    cases = set()
    for case in truth["cases"]:
        who = _KINDS[case["subject"]["kind"]], case["subject"]["name"]
        causes = {cause["cause"]: cause for cause in case["causes"]}
        counted = versions.get(case["subject"].get("filesystem"), ()) <= _COUNTS_FAILURES_UNTIL
        for rule in RULES:
            if rule.subject is not who[0]:
                continue
            cases.add((rule.code, who))
            cause = causes.get(_CAUSES[rule.code])
            if rule.code == "open-close-imbalance" and not counted:
                cause = None
            if rule.code == "unexplained-enqueues" and counted:
                cause = None
            _count(tallies[rule.code], case, cause, flagged.get((rule.code, who)))
    for rule_code, who in flagged.keys() - cases:  # subjects that are not in the truth
        tallies[rule_code].false += 1
        tallies[rule_code].wrong.append(f"false: {who[1]}, not in the truth")
    return tallies


def _count(
    tally: Tally, case: dict[str, Any], cause: dict[str, Any] | None, at: datetime | None
) -> None:
    who = f"{case['subject']['name']} ({case['part']}, {case['label']}; near {case['near']})"
    is_bad = case["label"] == "bad-data"
    if cause and cause["is_borderline"] and not is_bad:
        tally.borderline += 1
        tally.borderline_found += at is not None
    elif cause and not is_bad:
        if at is None:
            tally.missed += 1
            tally.wrong.append(f"missed: {who} {cause['ratio']} {cause['amounts']}")
        else:
            tally.detected += 1
            if cause["onset"]:
                onset = datetime.fromisoformat(cause["onset"])
                tally.delays_s.append((at - onset).total_seconds())
    elif at is not None:
        tally.false += 1
        other_causes = [entry["cause"] for entry in case["causes"]]
        tally.wrong.append(f"false: {who}; has {other_causes}")


def _summary(tallies: dict[str, Tally]) -> dict[str, Any]:
    overall = sum(tallies.values(), Tally())
    figures = ("detected", "missed", "false", "borderline", "borderline_found")
    shares = ("precision", "recall", "delay_p95_s")
    return {
        "overall": {name: getattr(overall, name) for name in (*figures, *shares)},
        "rules": {
            code: {name: getattr(tally, name) for name in (*figures, *shares, "wrong")}
            for code, tally in sorted(tallies.items())
        },
    }


def _show(tallies: dict[str, Tally]) -> None:
    overall = {"overall": sum(tallies.values(), Tally())}
    titles = f"{'detected':>9}{'missed':>8}{'false':>7}{'prec.':>8}{'recall':>8}{'p95 s':>7}"
    print(f"{'rule':24}{titles}")  # noqa: T201
    for code, tally in (*sorted(tallies.items()), *overall.items()):
        shares = (tally.precision, tally.recall)
        columns = "".join(f"{'-' if share is None else f'{share:.3f}':>8}" for share in shares)
        delay = "-" if tally.delay_p95_s is None else f"{tally.delay_p95_s:.0f}"
        print(  # noqa: T201
            f"{code:24}{tally.detected:9}{tally.missed:8}{tally.false:7}{columns}{delay:>7}"
            f"   borderline {tally.borderline_found} of {tally.borderline}"
        )
