"""A storm by an ordinary user that reaches the knee of the metadata server.

48 nodes unpack an archive five times, with a rising rate beyond the server's capacity and a pause
after each.
"""

from simulator.activity import Burst, Transfers
from simulator.batch.jobs import Job, Kind
from simulator.clock import local
from simulator.site import User

START = local(2017, 2, 14, "10:20:00")
_RUNTIME_S = 2_400
_NODES = 48
_RAMP_S, _RAMP_EVERY_S = 180, 300
_FIRST_RAMP_S = 300
# Metadata operations per second, for 10 s each.
_RATES = (
    *(500, 1_000, 2_000, 4_000, 6_000, 8_000, 10_000, 12_000, 14_000, 16_000),
    *(18_000, 20_000, 24_000, 28_000, 28_000, 16_000, 6_000, 1_000),
)
RAMPS = tuple(
    (START + _FIRST_RAMP_S + n * _RAMP_EVERY_S, START + _FIRST_RAMP_S + n * _RAMP_EVERY_S + _RAMP_S)
    for n in range(5)
)
# Each client has this many concurrent requests: a full server slows it down.
IN_FLIGHT_PER_CLIENT = 8
_MIX = {"open": 0.46, "getattr": 0.43, "close": 0.08, "getxattr": 0.03}


def job() -> Job:
    """Return the storm's job."""
    return Job(
        number=0,
        user=User("wuxian", 13_818, "CSC200"),
        name="unpack_all",
        queue="batch",
        kind=Kind.STORM,
        node_count=_NODES,
        limit_s=3_600,
        runtime_s=_RUNTIME_S,
        submitted=START - 420,
        started=START,
        busy_share=0.2,
    )


def bursts() -> list[Burst]:
    """Return the storm's activity."""
    step = _RAMP_S // len(_RATES)
    return [
        Burst(
            begin + n * step,
            begin + (n + 1) * step,
            {kind: int(rate * share * step) for kind, share in _MIX.items()},
            reads=Transfers(rate // 20, 65_536),
        )
        for begin, _ in RAMPS
        for n, rate in enumerate(_RATES)
    ]
