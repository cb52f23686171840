"""The job that harms others is flagged for it, and the one that is only busy is not."""

import json

import pytest

from ioportal.flags.models import FlagEvent
from simulator import incident


@pytest.fixture
def storm(tmp_path, register, ingest):
    """Load a harmful job and a busy one; return the truth about them."""
    incident.write(tmp_path, seed=1)
    register((tmp_path / "site.toml").read_text())
    ingest("sacct", tmp_path / "sacct.txt", cluster="rhea")
    for trace in (tmp_path / "rpctrace").iterdir():
        ingest("rpctrace", trace, server=trace.name.removesuffix(".log.zst"))
    return json.loads((tmp_path / "truth.json").read_text())["jobs"]


def test_who_makes_others_wait_is_flagged_for_it(storm, judge):
    flags = judge()

    blamed = [subject for rule, subject in flags if rule == "impact"]
    assert blamed == [storm["harmful"]["job"]]
    flag = flags["impact", storm["harmful"]["job"]]
    assert flag.numbers["impact_s"] == pytest.approx(storm["harmful"]["others_waiting_s"], rel=0.25)
    assert flag.state == flag.State.OPEN
    assert FlagEvent.objects.filter(flag=flag).count() == 1


def test_judging_again_changes_nothing(storm, judge):
    before = {key: (flag.state, flag.value, flag.until) for key, flag in judge().items()}

    assert {key: (f.state, f.value, f.until) for key, f in judge().items()} == before
    assert FlagEvent.objects.count() == len(before)
