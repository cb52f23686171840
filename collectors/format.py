"""The record of a format: everything that the command, the agent and the portal know about it."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal
from zoneinfo import ZoneInfo

from collectors.lustre.rpc_records import LATEST_S
from collectors.lustre.rpc_repeats import RepeatedRecords
from collectors.parsed import Parsed
from collectors.source import Lines, Source
from collectors.tables import Table

Scope = Literal["cluster", "filesystem", "server"]
AgentInput = Literal["file", "pipe", "command", "folder"]
Option = Literal[
    "cluster",
    "filesystem",
    "server",
    "target",
    "service",
    "at",
    "columns",
    "register_targets",
    "experiment",
    "arm",
    "run",
]

_UTC = ZoneInfo("UTC")


@dataclass(frozen=True)
class Origin:
    """What the input does not state itself."""

    zone: ZoneInfo = _UTC  # of local times
    columns: Sequence[str] | None = None  # of sacct output without a header; None: the usual ones
    exec_hosts_are_compute_nodes: bool = True
    service: str = ""  # of statistics without a parameter name
    repeats: RepeatedRecords | None = None  # records of earlier inputs, to be skipped
    latest_s: int = LATEST_S  # since 1970; records of an RPC trace with later times are rejected


EXPERIMENT_OPTIONS: tuple[Option, ...] = ("experiment", "arm", "run")


@dataclass(frozen=True)
class Format:
    """A format, declared by its collector and listed in `collectors.formats.FORMATS`."""

    name: str  # in commands, agent.toml and the API; stored: never renamed
    label: str  # on pages and in docs/formats.md
    table: Table  # of a file; the portal and the agent choose by it what to do with the rows
    parse: Callable[[Source, Origin], Iterator[Parsed]]
    scopes: tuple[Scope, ...]  # a source of this format sends data of one of these; none: people do
    options: tuple[Option, ...]  # of `manage.py ingest`
    agent_inputs: tuple[AgentInput, ...] = ()
    agent_table: Table | None = None  # of the agent's batches, if it differs
    seconds_table: Table | None = None  # of `Parsed.seconds`, which batches may have
    has_local_times: bool = False
    is_queue_view: bool = False  # accounting replaces the ends of jobs in it
    # Matches the first bytes of a file, but of no file in another format of experiments.
    head: re.Pattern[bytes] | None = None

    @property
    def batch_table(self) -> Table:
        """The table of the agent's batches."""
        return self.agent_table or self.table


@dataclass(frozen=True)
class LineFormat(Format):
    """A format whose records are single lines: the agent can follow a growing file."""

    parse: Callable[[Lines, Origin], Iterator[Parsed]]
