"""Effects compare jobs of the sizes that were flagged, and by node."""

from datetime import timedelta
from statistics import median

from ioportal.alerts.effects import Mailed, effects
from ioportal.alerts.outcomes import Outcome
from tests.logs import at

DAY, WEEK = timedelta(days=1), timedelta(days=7)
NOON = at("12:00")
SMALL, LARGE, LARGER = 15, 300, 350  # nodes


def test_larger_jobs_do_not_hide_that_each_node_does_less(new_job, new_case):
    """The median job does more, because there are more large jobs; a node does a quarter."""

    def run(day, nodes, per_node):
        figures = {
            "node_count": nodes,
            "metadata_operations": nodes * per_node,
            "metadata_operations_per_node": per_node,
        }
        return new_job(figures, node_count=nodes, started_at=NOON + day * DAY, name="pilot")

    mix = {SMALL: 6, LARGE: 1, LARGER: 1}
    before = [run(day, n, 8_000) for day in range(-7, 0) for n in mix for _ in range(mix[n])]
    mix = {SMALL: 1, LARGE: 2, LARGER: 2}
    after = [run(day, n, 2_000) for day in range(7) for n in mix for _ in range(mix[n])]
    flagged = next(job for job in before if job.node_count == LARGE)
    case = new_case(flagged)
    assert median(_operations(before)) < median(_operations(after))

    [effect] = effects([Mailed(case, NOON)], NOON + WEEK)

    assert effect.outcome is Outcome.IMPROVED
    assert effect.text == (
        "metadata operations per node fell 4.00\N{MULTIPLICATION SIGN} (± <0.1 %), "
        "median 8,000 operations → 2,000 operations "
        "(14 jobs on 7 days before 5 July, 28 jobs on 7 days since 5 July)"
    )
    assert effect.calm_jobs == 28


def _operations(jobs):
    return [job.statistics.metadata_operations for job in jobs]
