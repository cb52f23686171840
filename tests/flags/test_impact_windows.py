"""The job that harms others is flagged for it, and the one that is only busy is not."""

import json

import pytest

from ioportal.flags import history
from ioportal.flags.models import FlagEvent
from ioportal.telemetry.models import ImpactWindow, Principal
from simulator import incident

pytestmark = pytest.mark.long


@pytest.fixture
def storm(tmp_path, register, ingest):
    """Load a harmful job and a busy one; return the truth, and how to load their accounting."""
    incident.write(tmp_path, seed=1)
    register((tmp_path / "site.toml").read_text())
    for trace in (tmp_path / "rpctrace").iterdir():
        ingest("rpctrace", trace, server=trace.name.removesuffix(".log.zst"))
    truth = json.loads((tmp_path / "truth.json").read_text())["jobs"]
    return truth, lambda: ingest("sacct", tmp_path / "sacct.txt", cluster="rhea")


def test_who_makes_others_wait_is_flagged_as_soon_as_it_is_known_who_it_was(storm, evaluate):
    truth, account = storm
    assert not [subject for rule, subject in evaluate() if rule == "impact"]
    before = sum(ImpactWindow.objects.values_list("impact_us", flat=True))

    account()
    flags = evaluate()

    harmful = truth["harmful"]
    assert [subject for rule, subject in flags if rule == "impact"] == [harmful["job"]]
    flag = flags["impact", harmful["job"]]
    assert flag.numbers["impact_s"] == pytest.approx(harmful["others_waiting_s"], rel=0.25)
    assert flag.state == flag.State.OPEN
    assert history.for_flag(flag).amounts["amount"].max() == pytest.approx(flag.value)
    of_nodes = ImpactWindow.objects.exclude(kind=Principal.JOB)
    assert sum(of_nodes.values_list("impact_us", flat=True)) < before / 100

    told = {key: (one.state, one.value, one.until) for key, one in flags.items()}
    assert {key: (one.state, one.value, one.until) for key, one in evaluate().items()} == told
    assert FlagEvent.objects.filter(flag=flag).count() == 1
