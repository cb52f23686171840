"""docs/metrics.md, written by ``python -m ioportal.analysis.metrics_page > docs/metrics.md``."""

from collectors.tables import METADATA_OPERATIONS
from ioportal.analysis import quality
from ioportal.analysis.impact import MIN_BASELINE_WINDOWS, SlownessCriteria
from ioportal.analysis.metrics import METRICS, PANDA_METRICS, Metric
from ioportal.analysis.populations import DIGITS, FEWEST

_SLOWNESS = SlownessCriteria()
_HEAD = """# Metrics

Every figure that ioportal shows about a job is defined here, once. Code, pages and exports use
these names. A figure that is not known is empty, never zero.

This page is written from `ioportal/analysis/metrics.py`; a test holds the two together.

**Sources.** *accounting*: the batch system's record of the job. *job_stats*: counters by job id
that the MDTs and OSTs keep; differences between reads are I/O windows. *rpctrace*: the debug log of
a server; 10-second RPC windows. *PanDA record*: what PanDA says of a job of its own. Metadata
operations (job_stats) and metadata RPCs (rpctrace) are two different metrics: one open is one
operation and may be several RPCs, or none that a trace can tell from a look-up. They are never
added, and one never stands in for the other.

**Rates** divide by observed seconds only: time between two reads of the counters that are at most
`IOPORTAL_POLL_GAP` apart, or time that a trace covers. A target that is registered to keep idle
jobs' counters for longer (its `job_cleanup_interval`) may be read as seldom as that: counters are
cumulative, and nothing is missed. The first read of a target gives totals of unknown duration: they
count in totals and are kept out of rates.

## Figures of a job

"""

_TABLE = """| name | title | unit | source | formula | caveat |
|---|---|---|---|---|---|
"""


def _row(metric: Metric) -> str:
    return (
        f"| `{metric.name}` | {metric.title} | {metric.unit} | {metric.source} | {metric.formula} "
        f"| {metric.caveat} |\n"
    )


_REST = f"""
Operations by kind are kept besides: {", ".join(f"`count_{kind}`" for kind in METADATA_OPERATIONS)}.
`samedir_rename` and `crossdir_rename` are counted inside `rename`.

## Figures of a PanDA job

From its own record:

{"".join([_TABLE, *map(_row, PANDA_METRICS)])}
Everything else that is said of a PanDA job is its *batch job's*: servers see batch jobs. Where
several PanDA jobs share one, each of them has its whole value, never a part of it; so these values
must not be added up over PanDA jobs. They are unknown where PanDA's record names no batch job that
is known, or several tasks of an array.

## Quality

*Good*: the counters of the metadata targets were observed in at least {quality.GOOD_COVERED:.0%} of
the run (of those filesystems where anything of the job was counted; of a job that was counted
nowhere, of all that its cluster mounts), at most {quality.GOOD_AMBIGUOUS:.0%} of the operations may
be another job's, and no counter fell for no known reason. *Partial*: observed in at least
{quality.PARTIAL_COVERED:.0%}, at most {quality.PARTIAL_AMBIGUOUS:.0%} ambiguous. *Poor*: anything
below. The reasons are stored with the grade and shown beside it.

Bytes and sizes of requests have a grade of their own, `bytes_quality`, by the OSTs: *good* where
their counters were observed in at least {quality.GOOD_COVERED:.0%} of the run on average, *partial*
from {quality.PARTIAL_COVERED:.0%} on, otherwise *poor*. A server that was not read, or a filesystem
without registered OSTs beside one that has some, lowers that share. Where no OST is registered or
none was observed, bytes are unknown, never 0. Rules about bytes need both grades to be good.

## Node-hours

Nodes times hours of the run, inside the period: on the pages of users and projects and in trends
alike, a job that runs across midnight counts in each of both days with its part. While a job runs,
it counts up to when its statistics know it. A job without a recorded end counts at most until one
hour after its time limit, where that is known. Where jobs share nodes (the cluster's registered
`cores_per_node`), the nodes of a job are its cores / the cores of a node, at most those of its
allocation. Elsewhere, and where accounting does not know its cores, a job has whole nodes.

## Populations

Jobs by any filters: batch jobs, or PanDA jobs. Of each metric: *known* and *unknown* jobs, and of
the known values least, greatest, mean, standard deviation (of a sample: the sum of squares is
divided by n - 1) and the 50th, 90th and 99th percentile, interpolated linearly between the two
nearest values. Unknown values are left out of all of these.

Histograms have half-open bins, so that each known value is in exactly one of them and the job
list finds by `opens_from` and `opens_below` (likewise `read_bytes`, `write_bytes`, `closes`) as
many jobs as a bar says. Linear bins are 1, 2 or 5 times a power of ten wide. Logarithmic ones
lie between preferred numbers (1, 1.25, 1.6, 2, 2.5, 3.15, 4, 5, 6.3, 8 times a power of ten;
every second of them above four decades), and zeros have a bin of their own.

Whose jobs they are: everybody sees the figures of jobs that they may see one by one. Of all
others, people who are not staff are told how many there are, percentiles with {FEWEST} values or
more on either side, and bars of {FEWEST} jobs or more, without the {FEWEST - 1} least and
{FEWEST - 1} greatest values; of fewer than {FEWEST} jobs nothing. Least and greatest are values
of single jobs and are not told, nor are mean and deviation: where two populations differ by one
job, these give its value away. Such jobs are chosen by cluster, queue, time, size, state and
quality only, never by what names a person or a job, or by a figure. Times are widened to whole days
of the site's zone.

Values of other people's jobs are rounded to {DIGITS} significant digits, halves away from zero,
before anything is computed from them: percentiles, histograms, and where a job stands among its
peers. So no number of ranges, populations or jobs of one's own, compared with each other, tells
more of a job than its rounded value. Linear bins are no narrower than that. In the overview, rates
of all others are sums of {FEWEST} jobs or more in each step, rounded likewise; steps with fewer are
empty, and shares and means follow from the steps that are shown. Sums over others in an incident
are rounded, too.

With PanDA jobs as the unit n counts PanDA jobs, chosen by what their records say and by figures of
their batch job. The value of a batch job counts once for each PanDA job inside; the table says how
many batch jobs stand behind. The *failed share* is failed / (finished + failed). Of other people's
PanDA jobs nothing is told unless {FEWEST} batch jobs stand behind, and no value of a batch job at
all: a few of these may hold hundreds of PanDA jobs. They are chosen by cluster, time, site and
state only.

## RPC report

Counts, rates and times of the RPCs of a launch, a job or another principal in a range. A range
is widened to whole windows of 10 s. A rate is the count divided by the traced seconds inside it;
where a whole trace lies in the range, that is its own extent, first record to last. Service time is
time in the handler; queue time is arrival to start of handling. Both are over timed RPCs: lines
without a timing tail count and are not timed.

## Impact

Busy is not harmful. In each 10 s and service of a metadata server, a principal answers for its
share of the service time of ``max(0, others' time - what as many RPCs of the same kinds usually
take)``, where an RPC's time is from its arrival to its end. Added up over the windows of a range,
this is *others' waiting*, in seconds; others are those who kept the service less busy than itself.
Its *own waiting* is likewise its own time beyond the usual.

*Usual* is the baseline of a server, service and opcode: of the mean times in the windows of the
four weeks before, the median over those in which the service handled no more RPCs than in its
median window. Slow intervals, by what was usual before, do not count, so that an incident does
not become usual. It is reckoned anew daily, and a range is judged by what was usual when it began;
staff may pin another value. With fewer than {MIN_BASELINE_WINDOWS:,} such windows it is not
known, and RPCs of that kind are left out; the share of RPCs whose baseline is known is told.

## Slow intervals

A server is slow while its RPCs take {_SLOWNESS.leave:g} times as long as as many of the same kinds
usually do, if some window reaches {_SLOWNESS.enter:g} times. Pauses of up to
{_SLOWNESS.max_pause.seconds // 60} minutes belong to it; intervals of less than
{_SLOWNESS.min_duration.seconds} s do not count.
"""


def page() -> str:
    """Return the page as Markdown."""
    return "".join([_HEAD, _TABLE, *map(_row, METRICS), _REST])


if __name__ == "__main__":
    print(page(), end="")  # noqa: T201  (a program's output)
