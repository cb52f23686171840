"""The mitigations of the demo match the simulator's story."""

from urllib.parse import urlencode

import pytest

from ioportal.changes.models import Mitigation
from ioportal.demo import mitigations
from simulator import story
from tests.web.demo.tour import date_the_story

pytestmark = pytest.mark.django_db
STEPS = {step.key: step for step in story.STEPS}
METRICS = {"metadata_operations_per_node": "opens_per_node"}  # other names in the story


@pytest.fixture
def logged(tmp_path, monkeypatch):
    date_the_story(tmp_path, monkeypatch)
    for _ in range(2):
        mitigations.log()
    return {each.key.removeprefix("demo:"): each for each in Mitigation.objects.all()}


def test_they_have_titles_and_times_of_the_story(logged):
    assert len(logged) == 9
    for key, mitigation in logged.items():
        assert mitigation.title == STEPS[key].what
        assert mitigation.started_at.timestamp() == STEPS[key].at
        assert (mitigation.simulated, mitigation.is_public) == (True, True)
        assert mitigation.scope == urlencode({"user": "hepprod", "name": "atlas_pilot"})
    assert logged["fifteen-slots"].completed_at.timestamp() == story.FIFTEEN_SLOTS


def test_their_expectations_are_the_effects_of_the_story(logged):
    for key, mitigation in logged.items():
        effects = {effect.metric: effect.ratio for effect in STEPS[key].effects}
        if mitigation.factor:
            metric = METRICS.get(mitigation.metric, mitigation.metric)
            assert mitigation.factor == pytest.approx(effects[metric], rel=0.01), key
