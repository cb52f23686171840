"""A traced metadata server that serves single requests: two storms of alice.

Bob waits because of the first storm, and a crowd because of the second.
"""

from datetime import timedelta

from ioportal.load.analysis.waiting import MIN_BASELINE_WINDOWS
from tests import loading
from tests.logs import Run, at, rpc, sacct

EACH_S = 0.05  # for which a request occupies the server
USUAL_S, SERVICE_US = 0.0001, 80


def queue(*senders):
    """Return arrival, NID and time at the server of each request, in seconds after 12:10.

    Each sender is a tuple (NID, requests a second, seconds).
    """
    arrivals = sorted(
        (n / rate, nid) for nid, rate, seconds in senders for n in range(rate * seconds)
    )
    free, served = 0.0, []
    for arrival, nid in arrivals:
        free = max(free, arrival) + EACH_S
        served.append((arrival, nid, free - EACH_S - arrival + USUAL_S))
    return served


ALICE, BOB = ("1@gni", 37, 20), ("2@gni", 3, 60)
CROWD = [(f"{n}@gni", 1, 60) for n in range(3, 15)]  # twelve jobs of four users
ALONE, CROWDED = "12:10", "12:20"  # times of storms: with bob alone, and with the crowd
WITH, WITHOUT = queue(ALICE, BOB), queue(BOB)
BOB_WAITED_S, SPARED_S = (
    sum(took - USUAL_S for _, nid, took in of if nid == BOB[0]) - (others or 0)
    for of, others in (
        (WITH, 0),
        (WITH, sum(took - USUAL_S for _, _, took in WITHOUT)),
    )
)


def load(logs):
    """Load the jobs and the trace."""
    runs = sacct(
        Run("77", nodes="n1", user="alice", submit="08:00", start="09:00"),
        Run("78", nodes="n2", user="bob", submit="08:00", start="09:00"),
        *(
            Run(
                f"{100 + n}",
                nodes=f"n{n}",
                user=f"u{n % 4}",
                project="ENG1",
                submit="08:00",
                start="09:00",
            )
            for n in range(3, 15)
        ),
    )
    loading.ingest("sacct", logs("jobs", runs), cluster="anvil")
    calm = [
        rpc(at("12:10") - timedelta(seconds=10 * n), "2@gni", us=(SERVICE_US, 100))
        for n in range(MIN_BASELINE_WINDOWS + 80, 0, -1)
    ]
    storms = [
        rpc(at(storm) + timedelta(seconds=end), nid, us=(SERVICE_US, round(took * 1e6)))
        for storm, served in ((ALONE, WITH), (CROWDED, queue(ALICE, *CROWD)))
        for end, nid, took in sorted((arrival + took, nid, took) for arrival, nid, took in served)
    ]
    loading.ingest("rpctrace", logs("trace", "\n".join(calm + storms)), server="mds1")
