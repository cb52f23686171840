"""Registering sites and loading log files as an administrator does, for fixtures of any scope."""

import io
import json
import os

from django.core.management import call_command
from django.db import transaction

from ioportal.findings import evaluation
from ioportal.findings.models import Flag
from ioportal.jobs import statistics
from ioportal.site.models import Cluster, Filesystem, Nid, Node, Server, ServerVersion, Target
from ioportal.telemetry import rollups
from ioportal.telemetry.stage_runs import drain


def write_log(folder, name, *texts, read_at=None):
    """Write a log file and return its path; `read_at` is when its counters were read."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    parts = [text if isinstance(text, bytes) else text.encode() for text in texts]
    path.write_bytes(b"".join(part.removesuffix(b"\n") + b"\n" for part in parts))
    if read_at:
        os.utime(path, (read_at.timestamp(), read_at.timestamp()))
    return path


def register(folder, text):
    """Register a site from TOML."""
    path = folder / "site.toml"
    path.write_text(text)
    call_command("register", str(path), stdout=io.StringIO())


_REGISTERED = (
    Cluster, Node, Nid, Filesystem, Filesystem.clusters.through, Server, ServerVersion, Target,
)  # fmt: skip


class RegisteredSite:
    """A site registered by command once; later its rows are stored again, which is faster."""

    def __init__(self, text):
        self._text = text
        self._rows = {}  # by model

    def register(self, folder):
        """Register the site in a database that has none."""
        if not self._rows:
            register(folder, self._text)
            self._rows = {model: list(model.objects.all()) for model in _REGISTERED}
            return
        with transaction.atomic():
            for model, rows in self._rows.items():
                model.objects.bulk_create(rows)


def ingest(form, *files, **options):
    """Run ``manage.py ingest`` and return its counts."""
    out = io.StringIO()
    flags = [
        f"--{name}" if value is True else f"--{name}={value}" for name, value in options.items()
    ]
    call_command("ingest", form, *map(str, files), "--json", *flags, stdout=out)
    return json.loads(out.getvalue())


def run_task(task):
    """Run the task of a stage, turn by turn, until no rows are left."""
    while task():
        pass


def evaluate():
    """Run all stages up to evaluation; return the current flags by rule and subject."""
    drain(rollups.roll_up)
    drain(statistics.refresh_statistics)
    drain(evaluation.evaluate_pending)
    evaluation.evaluate_current()
    flags = Flag.objects.current().select_related("job", "case")
    return {(flag.rule, flag.job.batch_id if flag.job else flag.subject): flag for flag in flags}
