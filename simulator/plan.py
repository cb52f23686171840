"""Parameters of a run: length, load, size and faults."""

from dataclasses import dataclass, field

from simulator import faults, site, story
from simulator.clock import DAY_S, HOUR_S, MINUTE_S
from simulator.faults import Faults

FULL_POLL_S = 10 * MINUTE_S
_SLOW_READS_S = DAY_S  # of the OSSes and of whole targets, with rare reads of the MDT


@dataclass(frozen=True)
class Plan:
    """A run of the centre.

    Args:
        seed: the same plan with the same seed gives the same bytes.
        start: epoch second.
        end: epoch second.
        rate: ordinary submissions, relative to a centre that is busy all day.
        campaign_hours: daily hours of the campaign; during the crisis it works all day.
        poll_s: seconds between reads of the MDT's counters, except on the watched days.
        node_count: compute nodes of the machine.
        knee_per_s: capacity of the MDT's main service, requests per second.
        trace: whether the MDS's debug log is stored around incidents.
        stops: whether jobs that run at the end are deleted then.
        faults: faults of servers and readers.
    """

    seed: int = 1
    start: int = story.BEGIN
    end: int = story.END
    rate: float = 0.11
    campaign_hours: float = 0.75
    poll_s: int = 6 * HOUR_S
    node_count: int = site.NODE_COUNT
    knee_per_s: float = 20_000.0
    trace: bool = True
    stops: bool = False
    faults: Faults = field(default=Faults(faults.OF_THE_STORY))

    @property
    def slow_poll_s(self) -> int:
        """Return the seconds between reads of OSSes and whole targets, outside the watched days."""
        return self.poll_s if self.poll_s <= HOUR_S else max(self.poll_s, _SLOW_READS_S)

    def holds(self, moment: int) -> bool:
        """Return whether a moment is inside the run."""
        return self.start <= moment < self.end


def full_days(seed: int = 1) -> Plan:
    """Return the plan of the three detailed days: a busy centre with frequent reads."""
    return Plan(
        seed,
        *story.FULL_DAYS,
        rate=1.0,
        campaign_hours=24.0,
        poll_s=FULL_POLL_S,
    )
