"""A small trace of a server that is slow for a while."""

from datetime import timedelta

from ioportal.load.models import PinnedBaseline
from ioportal.site.models import Server, Service
from tests.logs import GETATTR, at, rpc

STORM = ("12:02", "12:02:20")  # the slow seconds, by time of arrival
SLOWEST_S = 4


def storm():
    """Return seven minutes of a trace: a storm of job 77, and others who wait for it.

    Requests of a second of the storm wait longer and longer, up to `SLOWEST_S`.
    """
    lines = []
    begin, end = map(at, STORM)
    for number in range(420):
        arrival = at("12:00") + timedelta(seconds=number)
        lines += _arrived(arrival, 0, "2@gni", "")  # job 78, by its node
        if begin <= arrival < end:
            waited = SLOWEST_S * (arrival - begin) / (end - begin)
            for request in range(4):
                lines += _arrived(arrival, waited, f"{3 + request % 2}@gni", "77")
            lines += _arrived(arrival, waited, "5@gni", "77")  # job 79 runs there
            lines += _arrived(arrival, waited, "2@gni", "")
            lines += _arrived(arrival, waited, "9@gni", "cp.0")
    return "\n".join(line for _, line in sorted(lines))


def _arrived(arrival, waited_s, nid, job):
    """Return the record of a request with its time."""
    total = timedelta(seconds=waited_s, microseconds=100_000)
    moment = arrival + total
    us = (30_000, total // timedelta(microseconds=1))
    return [(moment, rpc(moment, nid, GETATTR, job=job, us=us))]


def overload():
    """Return the records of six minutes of a queue with their times: each request takes 20 ms.

    Jobs 78 and 79 send five requests a second each. From `STORM` on, job 77 sends 100 a second for
    20 s. The server needs half a minute more for the rest.
    """
    work = timedelta(milliseconds=20)
    begin, end = map(at, STORM)
    arrivals = [
        (at("12:00") + timedelta(seconds=second, milliseconds=part * 200 + place), nid, "")
        for second in range(360)
        for part in range(5)
        for place, nid in enumerate(("2@gni", "5@gni"))
    ] + [
        (begin + number * timedelta(milliseconds=10), f"{3 + number % 2}@gni", "77")
        for number in range(100 * int((end - begin).total_seconds()))
    ]
    lines, free = [], at("12:00")
    for arrival, nid, job in sorted(arrivals):
        free = max(free, arrival) + work
        us = (20_000, (free - arrival) // timedelta(microseconds=1))
        lines.append((free, rpc(free, nid, GETATTR, job=job, us=us)))
    return lines


def pin_baseline():
    """Pin the usual time of the requests of `overload`."""
    PinnedBaseline.objects.create(
        server=Server.objects.get(name="mds1"), service=Service.objects.get(), opcode=GETATTR,
        baseline_us=20_000, since=at("12:00"),
    )  # fmt: skip
