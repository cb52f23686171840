"""Writes a labelled set."""

import json
from pathlib import Path

from simulator.labelled import truth, writing
from simulator.labelled.counting import Counting
from simulator.labelled.scene import Scene
from simulator.labelled.service import Service
from simulator.progress import say


def write(out: Path, *, seed: int, share: float = 1.0) -> None:
    """Write a labelled set below `out`; the same seed gives the same bytes.

    Args:
        out: a folder that has no set.
        seed: seed of all random values.
        share: size relative to a complete set.
    """
    say("labelled set: demand")
    scene = Scene.draw(seed, share)
    say("labelled set: service")
    service = Service.serve(scene)
    counting = Counting(scene, service)
    out.mkdir(parents=True, exist_ok=True)
    (out / "site.toml").write_text(writing.registration(scene))
    say("labelled set: harm")
    (out / "truth.json").write_text(json.dumps(truth.content(scene, service), indent=1))
    say("labelled set: history")
    writing.before(out / "before", scene, service, counting)
    say("labelled set: stream")
    writing.slices(out / "slices", scene, service, counting)
