"""Reads a growing trace once, like an agent: ``python -m bench.reading TRACE STATE``.

It prints a line when it is ready, and starts when its input is closed.
"""

import sys
from pathlib import Path
from threading import Event

from collectors.agent import memory, sources
from collectors.agent.config import SourceConfig
from collectors.agent.delivery.spool import Spool
from collectors.agent.health import Health
from collectors.agent.read_loop import ReadLoop
from collectors.format import Origin
from collectors.lustre.rpc_trace import RPC_TRACE

_EVERY_S = 5.0
_SPOOL_BYTES = 10**9


def main() -> None:
    """Read to the end of the log, until its data is on the disk."""
    trace, state = map(Path, sys.argv[1:])
    memory.retain_freed()
    source = SourceConfig(
        name="trace",
        format=RPC_TRACE,
        kind="file",
        path=str(trace.absolute()),
        command=(),
        token_file=Path(),
        every_s=_EVERY_S,
        origin=Origin(),
        timeout_s=0,
        look_back_s=0,
        idle_s=0,
        settled_s=0,
    )
    spool = Spool(state, _SPOOL_BYTES)
    loop = ReadLoop(sources.reader_of(source, state), spool, _EVERY_S, Health("trace"))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.read()
    loop.step(Event())
    if not spool.depth().batches:
        sys.exit(f"{trace} was not read")


if __name__ == "__main__":
    main()
