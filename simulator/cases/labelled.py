"""Writes a labelled set."""

import json
from pathlib import Path

from simulator.cases import truth, writing
from simulator.cases.filesystems import ALL, SMALL
from simulator.cases.scene import Scene
from simulator.cases.traffic import Traffic
from simulator.progress import say

CALM_BIN_S = 10


def write(out: Path, *, seed: int, share: float = 1.0) -> None:
    """Write a labelled set below `out`; the same seed gives the same bytes.

    Args:
        out: a folder without one.
        seed: two seeds differ in every amount.
        share: of the subjects of a whole set, for a smaller one; one of each cause stays.
    """
    say("cases: who does what")
    scene = Scene.of(seed, share)
    say("cases: the servers")
    calm = Traffic.of(scene, SMALL, scene.calm_since, scene.opened, bin_s=CALM_BIN_S)
    traffic = {
        one: Traffic.of(scene, one, scene.opened, scene.closed, bin_s=1)
        for one in ALL
        if one.is_traced
    }
    out.mkdir(parents=True, exist_ok=True)
    (out / "site.toml").write_text(writing.registration())
    say("cases: what is known before")
    writing.before(out / "before", scene, calm)
    say("cases: the stream")
    writing.slices(out / "slices", scene, traffic)
    say("cases: the truth")
    (out / "truth.json").write_text(json.dumps(truth.told(scene, traffic), indent=1))
