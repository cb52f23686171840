"""Impact windows: a job that slows down others is flagged; a busy job without impact is not."""

import json

import pytest

from ioportal.findings import history
from ioportal.findings.models import FlagEvent
from ioportal.jobs.analysis.anonymity import coarse
from ioportal.telemetry.models import ImpactWindow, JobGroup, Principal
from simulator import incident

pytestmark = pytest.mark.long


@pytest.fixture
def storm(tmp_path, register, ingest):
    """Ingest traces of a harmful and a busy job; return the truth and a function for accounting."""
    incident.write(tmp_path, seed=1)
    register((tmp_path / "site.toml").read_text())
    for trace in (tmp_path / "rpctrace").iterdir():
        ingest("rpctrace", trace, server=trace.name.removesuffix(".log.zst"))
    truth = json.loads((tmp_path / "truth.json").read_text())["jobs"]
    return truth, lambda: ingest("sacct", tmp_path / "sacct.txt", cluster="rhea")


def test_a_job_with_impact_is_flagged_after_its_accounting_arrives(storm, evaluate):
    truth, ingest_accounting = storm
    assert not [subject for rule, subject in evaluate() if rule == "impact"]
    assert _impact_s() == 0  # no request is known to be of a user's job

    ingest_accounting()
    flags = evaluate()

    harmful = truth["harmful"]
    assert [subject for rule, subject in flags if rule == "impact"] == [harmful["job"]]
    flag = flags["impact", harmful["job"]]
    assert flag.numbers["impact_s"] == pytest.approx(harmful["others_waiting_s"], rel=0.1)
    assert flag.case.state == flag.case.State.OPEN
    assert coarse(history.for_flag(flag).amounts["amount"].max()) == flag.value
    assert _impact_s(kind__in=set(Principal) - {Principal.JOB}) == 0
    user = JobGroup.objects.get(kind=JobGroup.Kind.USER, text=flag.owner)
    of_user = _impact_s(kind=user.kind, principal_id=user.pk)
    assert coarse(of_user) == flag.numbers["impact_s"]

    assert _summary(evaluate()) == _summary(flags)
    assert FlagEvent.objects.filter(flag=flag).count() == 1


def _impact_s(**conditions):
    windows = ImpactWindow.objects.filter(**conditions)
    return sum(windows.values_list("impact_us", flat=True)) / 1e6


def _summary(flags):
    return {key: (flag.case.state, flag.value, flag.until) for key, flag in flags.items()}
