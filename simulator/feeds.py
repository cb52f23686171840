"""Configuration that sends today's logs to the portal.

site.toml     registers a source for each log
agent.toml    the agent's sources; tokens are next to it
"""

import json
from dataclasses import dataclass
from pathlib import Path

from simulator import site
from simulator.clock import MINUTE_S
from simulator.plan import Plan
from simulator.servers import polls
from simulator.servers.polls import What
from simulator.today import PILOT_EVERY_S


@dataclass(frozen=True)
class _Feed:
    """A source.

    Args:
        format: format of the log.
        about: key and name of its server, filesystem or cluster.
        every_s: seconds between reads.
        file: growing file, pattern for a folder, or output of a command; None: the output of the
            command with the name of the format.
        settings: additional settings of the agent.
        batch_every_s: seconds between batches, if longer than `every_s`.
    """

    format: str
    about: tuple[str, str]
    every_s: int
    file: tuple[str, str] | None = None
    settings: tuple[tuple[str, str | bool], ...] = ()
    batch_every_s: int = 10


_ZONE = ("zone", "America/New_York")
_MDS = ("server", site.MDS)
_MACHINE, _ANALYSIS = ("cluster", site.CLUSTER), ("cluster", site.ANALYSIS_CLUSTER)
_KEPT = ("job_cleanup_interval", f"{polls.kept_s(Plan(), What.MDT)}s")
_FEEDS = (
    _Feed("rpctrace", _MDS, 2, ("file", "rpctrace.log")),
    _Feed("job_stats", _MDS, 10, settings=(_KEPT,)),
    *(
        _Feed("job_stats", ("server", oss), MINUTE_S, ("command", f"{oss}.txt"), (_KEPT,))
        for oss in site.OSTS_OF_OSS
    ),
    _Feed("md_stats", _MDS, 10),
    _Feed("exports", _MDS, 10),
    _Feed("squeue", _ANALYSIS, 10, settings=(_ZONE,)),
    _Feed("sacct", _ANALYSIS, 15, settings=(_ZONE,)),
    _Feed(
        "pbs",
        _MACHINE,
        5,
        ("file", "pbs/20*"),
        (_ZONE, ("exec_hosts_are_compute_nodes", False)),
        PILOT_EVERY_S,
    ),
    _Feed("panda", _MACHINE, 30, ("folder", "panda/*.json"), (("settled", "1s"),), PILOT_EVERY_S),
)


def write(folder: Path, portal: str) -> None:
    """Write both files.

    Args:
        folder: folder of the logs.
        portal: address of the portal.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "site.toml").write_text("\n".join(map(_registered, _FEEDS)))
    logs = folder.absolute()
    head = f"[portal]\nurl = {_toml(portal)}\n\n[agent]\nstate = {_toml(f'{logs}/agent')}\n"
    sources = [_read(feed, logs) for feed in _FEEDS]
    (folder / "agent.toml").write_text("\n".join([head, *sources]))


def _registered(feed: _Feed) -> str:
    key, name = feed.about
    return _table(
        ("name", _name(feed)),
        ("format", feed.format),
        (key, name),
        ("poll_interval_s", max(feed.every_s, feed.batch_every_s)),
    )


def _read(feed: _Feed, folder: Path) -> str:
    kind, file = feed.file or ("command", f"{feed.format}.txt")
    path = f"{folder}/{file}"
    return _table(
        ("name", _name(feed)),
        ("format", feed.format),
        (kind, ["cat", path] if kind == "command" else path),
        ("every", f"{feed.every_s}s"),
        *feed.settings,
        ("token_file", f"{_name(feed)}.token"),
    )


def _name(feed: _Feed) -> str:
    return f"{feed.about[1]}-{feed.format}"


def _table(*values: tuple[str, str | int | bool | list[str]]) -> str:
    lines = [f"{key} = {_toml(value)}" for key, value in values]
    return "\n".join(["[[source]]", *lines]) + "\n"


def _toml(value: str | int | bool | list[str]) -> str:  # noqa: FBT001  (a value like others)
    return json.dumps(value)  # the same in TOML
