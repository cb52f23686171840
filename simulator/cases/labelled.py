"""Writes a labelled set."""

import json
from collections import defaultdict
from pathlib import Path


from simulator.activity import Source
from simulator.cases import cast, hosts, truth, writing
from simulator.cases.cast import CALM_S, STREAM_S
from simulator.cases.filesystems import ALL, SMALL, Filesystem
from simulator.cases.traffic import Traffic
from simulator.clock import DAY_S, HOUR_S, local
from simulator.progress import say
from simulator.randomness import stream

_DAY = local(2017, 9, 4)
_KNEES_PER_S = (260, 400)
_CALM_BIN_S = 10


def write(out: Path, *, seed: int, share: float = 1.0) -> None:
    """Write a labelled set below `out`; the same seed gives the same bytes.

    Args:
        out: a folder without one.
        seed: two seeds differ in every amount.
        share: of the subjects of a whole set, for a smaller one; one of each cause stays.
    """
    chance = stream(seed, "cases")
    opened = _DAY + seed % 300 * DAY_S + int(chance.integers(24, 36)) * HOUR_S
    knee_per_s = float(chance.uniform(*_KNEES_PER_S))
    say("cases: who does what")
    actors = cast.actors(seed, opened, knee_per_s, share)
    others = hosts.hosts(stream(seed, "cases: hosts"), opened)
    sources: dict[Filesystem, list[Source]] = defaultdict(list)
    for actor in actors:
        sources[actor.filesystem].append(actor.source)
    for host in others:
        sources[host.filesystem].append(host.source)
    say("cases: the servers")
    traffic = {
        one: Traffic.of(
            sources[one],
            opened,
            opened + STREAM_S,
            knee_per_s,
            stream(seed, f"cases: requests to {one.name}"),
            bin_s=1,
        )
        for one in ALL
        if one.is_traced
    }
    calm = Traffic.of(
        sources[SMALL],
        opened - CALM_S,
        opened,
        knee_per_s,
        stream(seed, "cases: calm requests"),
        bin_s=_CALM_BIN_S,
    )
    cleared = {
        actor.source: (actor.job.started or 0) + actor.role.reset_s
        for actor in actors
        if actor.role.reset_s
    }
    say("cases: what is known before")
    (out).mkdir(parents=True, exist_ok=True)
    (out / "site.toml").write_text(writing.registration())
    writing.before(out / "before", seed, opened, actors, sources, cleared, calm)
    say("cases: the stream")
    writing.slices(out / "slices", seed, opened, actors, sources, cleared, traffic)
    say("cases: the truth")
    told = truth.told(seed, opened, knee_per_s, actors, others, traffic)
    (out / "truth.json").write_text(json.dumps(told, indent=1))
