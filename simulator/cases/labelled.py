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
        seed: seed of all random values.
        share: size relative to a complete set; at least one subject of each cause remains.
    """
    say("cases: the cast")
    scene = Scene.draw(seed, share)
    say("cases: the servers")
    calm = Traffic.draw(scene, SMALL, scene.calm_since, scene.opened, bin_s=CALM_BIN_S)
    traffic = {
        filesystem: Traffic.draw(scene, filesystem, scene.opened, scene.closed, bin_s=1)
        for filesystem in ALL
        if filesystem.is_traced
    }
    out.mkdir(parents=True, exist_ok=True)
    (out / "site.toml").write_text(writing.registration())
    say("cases: history before the stream")
    writing.before(out / "before", scene, calm)
    say("cases: the stream")
    writing.slices(out / "slices", scene, traffic)
    say("cases: the truth")
    (out / "truth.json").write_text(json.dumps(truth.content(scene, traffic), indent=1))
