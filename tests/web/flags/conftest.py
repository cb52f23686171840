"""Flags of new jobs, without their data, and a traced server."""

import pytest

from ioportal.flags.models import Flag
from ioportal.site.models import Filesystem, Server
from ioportal.telemetry.models import Coverage
from tests.logs import at

RULE = "metadata-operations"


@pytest.fixture
def new_flag(new_job):
    """Create a flag of a job, without its data."""

    def make(job=None, **facts):
        job = job or new_job()
        return Flag.objects.create(
            **{
                "rule": RULE,
                "rule_version": 1,
                "subject_kind": "job",
                "subject": str(job.pk),
                "job": job,
                "owner": job.owner,
                "cluster": job.cluster,
                "state": Flag.State.OPEN,
                "severity": Flag.Severity.WARNING,
                "since": at("12:00"),
                "until": at("13:00"),
                "value": 3e6,
                "numbers": {"metadata_operations": 3e6},
                "thresholds": {"metadata_operations": 2e6},
                "scope": "rule defaults",
                "advice": "Keep software off Lustre.",
                **facts,
            }
        )

    return make


@pytest.fixture
def mds(db):
    """A metadata server that was traced until 12:30."""
    lake = Filesystem.objects.create(name="lake")
    server = Server.objects.create(name="mds1", filesystem=lake, kind=Server.Kind.MDS)
    traced = {"start": at("12:00"), "end": at("12:30"), "segment_id": 1}
    Coverage.objects.create(source="rpctrace", source_id=server.pk, **traced)
    return server
