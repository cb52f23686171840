"""Impact compared with a queueing server that serves the same requests again without a group."""

import numpy as np
import polars as pl
import pytest

from ioportal.analysis.impact import BASELINES, MEMBERS, WINDOWS
from simulator.clock import MICROSECONDS
from simulator.servers import mds
from simulator.servers.mds import LDLM_ENQUEUE, MDS_CLOSE, MDS_GETATTR, MDS_REINT
from tests.analysis.window_impact import impact

KNEE_PER_S = 500
STATS = {LDLM_ENQUEUE: 0.6, MDS_GETATTR: 0.4}
CREATES = {MDS_REINT: 0.5, LDLM_ENQUEUE: 0.35, MDS_CLOSE: 0.15}
EVERYDAY = {LDLM_ENQUEUE: 0.55, MDS_CLOSE: 0.25, MDS_GETATTR: 0.2}
WINDOW_US = 10 * MICROSECONDS


def storm(user, load, mix=STATS, jobs=1, start=100, end=160):
    """Return jobs of a user with a load in relation to the server's capacity."""
    return [(f"{user} {n}", user, load / jobs, mix, start, end) for n in range(jobs)]


def bystanders(count, load):
    """Return jobs of different users that are present all the time."""
    weights = np.arange(1, count + 1) / (count * (count + 1) / 2)
    return [
        (f"user{n} 0", f"user{n}", load * weight, EVERYDAY, 0, 300)
        for n, weight in enumerate(weights)
    ]


class Served:
    """Requests of some jobs, served by the simulator's server."""

    def __init__(self, jobs):
        chance = np.random.default_rng(7)
        columns = [self._draw(number, job, chance) for number, job in enumerate(jobs)]
        arrival_us, opcode, job = (np.concatenate(column) for column in zip(*columns, strict=True))
        dispatch_us = mds.dispatch_times(len(opcode), chance)
        idle_us = mds.service_times(opcode, chance)
        order = np.argsort(arrival_us + dispatch_us, kind="stable")
        self.ready_us = (arrival_us + dispatch_us)[order]
        self.dispatch_us, self.idle_us = dispatch_us[order], idle_us[order]
        self.opcode, self.job = opcode[order], job[order]
        self.jobs = jobs

    @staticmethod
    def _draw(number, job, chance):
        _, _, load, mix, start, end = job
        rate_per_s = load * KNEE_PER_S * mds.MAIN_MEAN_US / mds.mean_work_us(mix)
        size = chance.poisson(rate_per_s * (end - start))
        return (
            chance.integers(start * MICROSECONDS, end * MICROSECONDS, size=size),
            chance.choice(list(mix), p=list(mix.values()), size=size),
            np.full(size, number),
        )

    def times(self, rows):
        """Return end and time of some requests, if only these are served."""
        ready_us, opcode = self.ready_us[rows], self.opcode[rows]
        service_us = mds.under_pressure(ready_us, self.idle_us[rows], opcode, KNEE_PER_S)
        start_us = mds.serve(ready_us, service_us, opcode).start_us
        end_us = start_us + service_us
        return end_us, end_us - ready_us + self.dispatch_us[rows], service_us

    def others_waiting_s(self, user):
        """Return how much less others wait without a user."""
        users = np.array([job[1] for job in self.jobs])[self.job]
        rows = np.flatnonzero(users != user)
        with_user = self.times(np.arange(len(self.job)))[1][rows]
        return (with_user.sum() - self.times(rows)[1].sum()) / MICROSECONDS

    def impact(self):
        """Return the impact from the windows of all requests."""
        end_us, total_us, service_us = self.times(np.arange(len(self.job)))
        pool, _ = mds.pools_of(self.opcode)
        requests = pl.DataFrame(
            {
                "start": end_us // WINDOW_US * WINDOW_US,
                "service": pool,
                "opcode": self.opcode,
                "principal": np.array([job[0] for job in self.jobs])[self.job],
                "service_us_sum": service_us,
                "total_us_sum": total_us,
                "usual_us": self.idle_us + self.dispatch_us,
            }
        ).with_columns(pl.col("start").cast(pl.Datetime("us", "UTC")), server=1, timed=1)
        kinds = ("server", "service", "opcode")
        baseline = requests.group_by(kinds).agg(baseline_us=pl.mean("usual_us"))
        members = pl.DataFrame(
            [(name, user, user, user, None) for name, user, *_ in self.jobs],
            schema=MEMBERS,
            orient="row",
        )
        return impact(
            requests.select(pl.col(name).cast(kind) for name, kind in WINDOWS.items()),
            baseline.select(pl.col(name).cast(kind) for name, kind in BASELINES.items()),
            members,
        )


@pytest.mark.parametrize(
    ("jobs", "storms"),
    [
        pytest.param([*storm("eve", 1.1), *bystanders(10, 0.1)], {"eve"}, id="one job"),
        pytest.param([*storm("eve", 1.1, CREATES), *bystanders(10, 0.1)], {"eve"}, id="creates"),
        pytest.param([*storm("eve", 1.2, jobs=700), *bystanders(10, 0.1)], {"eve"}, id="700 jobs"),
        pytest.param(
            [*storm("eve", 0.7), *storm("mallory", 0.7), *bystanders(10, 0.1)],
            {"eve", "mallory"},
            id="two equal storms",
        ),
        pytest.param([*storm("eve", 0.8), *bystanders(50, 0.6)], {"eve"}, id="50 busy jobs"),
        pytest.param(
            [
                job
                for start in range(100, 200, 20)
                for job in storm("eve", 2.5, start=start, end=start + 3)
            ]
            + bystanders(10, 0.1),
            {"eve"},
            id="bursts",
        ),
    ],
)
def test_impact_is_the_waiting_saved_without_a_user(jobs, storms):
    served = Served(jobs)
    result = served.impact()

    users = dict(result.groups.filter(kind="user").select("key", "impact_s").iter_rows())
    for user in storms:
        assert users[user] == pytest.approx(served.others_waiting_s(user), rel=0.1)
    smallest = min(users[user] for user in storms)
    assert max(users[user] for user in users.keys() - storms) <= 0.02 * smallest
    single = dict(result.principals.select("principal", "impact_s").iter_rows())
    outside = [name for name, user, *_ in jobs if user not in storms]
    assert max(single[name] for name in outside) <= 0.02 * smallest


def test_a_server_with_little_load_has_no_impact():
    result = Served(bystanders(10, 0.1)).impact()

    assert result.groups["impact_s"].max() < 0.5
