"""Writes docs/metrics.md: ``python -m ioportal.findings.metrics_document > docs/metrics.md``."""

from textwrap import fill

from collectors.tables import METADATA_OPERATIONS
from ioportal.jobs.analysis import quality
from ioportal.jobs.analysis.anonymity import DIGITS, MAX_SHARE, MIN_GROUP, MIN_OWNERS
from ioportal.jobs.analysis.comparison.results import MIN_DAYS, MIN_JOBS
from ioportal.jobs.analysis.quality import CONTRADICTION, MIN_NOT_SENT
from ioportal.jobs.analysis.usual import MIN_SAME_NAME
from ioportal.load.analysis.impact_estimate import (
    CALM_WINDOWS,
    CAUSE_SHARE,
    COSTLIEST,
    MIN_CALM_INTERVALS,
    PART_SHARE,
)
from ioportal.load.analysis.impact_estimate import PRECISION as ESTIMATE_PRECISION
from ioportal.load.analysis.load_ramp import MAX_BINS, MIN_RANGE, MIN_VALUES
from ioportal.load.analysis.replay.demand import BLOCKED_TIMES
from ioportal.load.analysis.replay.impact_by_group import DEFINITION, PRECISION
from ioportal.load.analysis.replay.questions import (
    BUSIER_TIMES,
    DRAINED,
    MIN_SPARED,
    MOST_STEADY,
)
from ioportal.load.analysis.replay.server import CHANCE, FULL_SHARE, TYPICAL
from ioportal.load.analysis.replay.spared_waiting import (
    BEFORE_S,
    MIN_WORK,
    MORE_TIMES,
    MOST_ADDED,
    MOST_SCALE,
    MOST_UNTRACED,
    OPEN_S,
    OPEN_SHARE,
    SILENT_S,
    STEADY_TIMES,
    YOUNG_S,
)
from ioportal.load.analysis.slowness import EVERY_SLOW_WINDOW, SlownessCriteria
from ioportal.load.analysis.waiting import MIN_BASELINE_WINDOWS
from ioportal.metrics import METRICS, PANDA_METRICS, Metric
from ioportal.rules.rule import HARM_SHARE

_IMPACT = fill(DEFINITION, 100)
_SLOWNESS = SlownessCriteria()
_GOOD, _PARTIAL = f"{quality.GOOD_COVERED:.0%}", f"{quality.PARTIAL_COVERED:.0%}"
_GOOD_AMBIGUOUS = f"{quality.GOOD_AMBIGUOUS:.0%}"
_PARTIAL_AMBIGUOUS = f"{quality.PARTIAL_AMBIGUOUS:.0%}"
_HEAD = """# Metrics

This page defines every figure of a job. Code, pages and exports use these names. Unknown figures
are empty, never zero.

This page is written from `ioportal/metrics.py`; a test keeps both consistent.

| source | content |
|---|---|
| accounting | the batch system's record of the job |
| job_stats | counters of the MDTs and OSTs by job id; differences between reads are I/O windows |
| rpctrace | the debug log of a server; RPC windows of 10 s |
| PanDA record | PanDA's record of its own job |

**Operations and RPCs.** Metadata operations (job_stats) and metadata RPCs (rpctrace) are different
metrics. An open is one operation and may cause several RPCs, or none that differ from a look-up in
a trace. The two metrics are never added, and neither replaces the other.

**Rates** divide by observed seconds: time between two reads of the counters that are at most
`IOPORTAL_POLL_GAP` apart, or time covered by a trace. With a registered `job_cleanup_interval`,
reads of a target may be that far apart, because counters are cumulative. The first read of a
target gives totals of unknown duration, which count in totals but not in rates. An agent's first
poll excludes operations that were loaded from files before.

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
Operations by kind are also stored: {", ".join(f"`count_{kind}`" for kind in METADATA_OPERATIONS)}.
The mean times of each kind are `mean_open_us` and so on, as defined for `mean_operation_us`.
`samedir_rename` and `crossdir_rename` are counted in `rename`.

## Figures of a PanDA job

Figures of its own record:

{"".join([_TABLE, *map(_row, PANDA_METRICS)])}
All other figures belong to its *batch job*, because servers see batch jobs. If several PanDA jobs
share a batch job, each has the full value, so these values must not be added over PanDA jobs. They
are unknown if PanDA's record refers to no known batch job, or to several tasks of an array.

## Quality

| grade | counters of the metadata targets observed | ambiguous and contradicted operations |
|---|---|---|
| *good* | at least {_GOOD} of the run, no counter cleared | at most {_GOOD_AMBIGUOUS} |
| *partial* | at least {_PARTIAL} of the run | at most {_PARTIAL_AMBIGUOUS} |
| *poor* | less | more |

The metadata targets belong to the filesystems that counted operations of the job. Without any
operations, they are all targets that its cluster mounts. The grade is stored with its reasons.

The ambiguous share is the larger one of two: operations that may be the job's or another job's,
relative to those and its own operations, and the same for RPCs. The contradicted share is the
largest one of three:

- RPCs that had the job's id but came from another job's node or another user, relative to those and
  its own RPCs;
- RPCs from its nodes that had another job's id, relative to its own RPCs;
- where the exports of the MDTs were polled during at least {_GOOD} of the run: operations that were
  counted for the job but that its nodes did not send, relative to all that were counted. They count
  if they are at least {MIN_NOT_SENT:,} and if the counted operations are more than
  {CONTRADICTION} times the operations of its nodes. Clients that may send for any job (forwarding
  nodes, clients without a registered node) are assumed to have sent them, and so are nodes of
  several jobs while another job is on one of its nodes.

The first and the third count only where job ids have no user id: there, counters cannot tell the
job's operations from others'.

Bytes and request sizes have a separate grade, `bytes_quality`. It is *good* if the counters of
the OSTs were observed in at least {_GOOD} of the run on average and none was cleared, *partial*
from {_PARTIAL}, and otherwise *poor*. Unread servers, and filesystems without registered OSTs,
lower the average. Without any registered and observed OST, bytes are unknown, never 0. Rules about
bytes need both grades to be good.

Counters are cleared by an administrator, and by the restart of a server. Operations since the read
before are then lost. It is noticed when an entry falls, begins again or vanishes although it was
used within the last 0.9 x `job_cleanup_interval`, so that Lustre did not remove it. All entries of
a target that restarted are then marked, even new ones and ones that already exceed their earlier
values. Grades count it
in poll intervals that begin at most one minute after the run.

Without any operations or bytes of the job in the counters, all figures of counters are unknown.

## Node-hours

Node-hours are nodes times hours of the run inside the period. On pages of users and projects and
in trends, a job that runs across midnight counts partly in each of both days. Rankings count each
job that ran in the period with its whole figures and its whole node-hours. A running job counts up
to the time of its statistics. A job without a recorded end counts at most until one hour after its
time limit, if that is known.

Where jobs share nodes (the cluster's registered `cores_per_node`), the nodes of a job are its
cores / the cores of a node, at most its allocated nodes. Elsewhere, and without known cores, a
job has whole nodes.

## Rankings

A ranking has the sum of a figure over the jobs of a subject, or the highest figure of a job, and
on request the sum in relation to the node-hours, the nodes or the number of these jobs. A ratio
is over the jobs for which both the figure and the divisor are known, so an unknown figure does
not count as zero. The number of the other jobs is shown as *value unknown*, in bold above 10 % of
the jobs.

The *minimum* of node-hours is over jobs with a known value. Ratios have a minimum of 1 node-hour
unless another one is chosen, because very short runs have extreme ratios.

A job with PanDA jobs of several *PanDA tasks* counts for each task in proportion to the task's
PanDA jobs in it: its figure, nodes, node-hours and, per job, itself. The column of jobs counts it
once for each task.

The line next to a subject has the same value, ratio included, of the jobs that started in each of
24 equal intervals between the first and the last start of all selected jobs. A sum is 0 in
intervals without jobs. The line has a gap where no value is known.

## Populations

A population is a set of batch jobs or PanDA jobs by filters. For each metric it has the numbers
of *known* and *unknown* values, and for the known values minimum, maximum, mean, standard
deviation (of a sample, with n - 1) and the 50th, 90th and 99th percentile (linear interpolation).

**Histograms** have half-open bins, so each known value is in exactly one bin. The job list returns
the jobs of a bin with `opens_from` and `opens_below` (similarly for `read_bytes`, `write_bytes`,
`closes`, `metadata_operations_per_node`). Linear bins have a width of 1, 2 or 5 times a power of
ten. Logarithmic bins lie between preferred numbers (1, 1.25, 1.6, 2, 2.5, 3.15, 4, 5, 6.3, 8 times
a power of ten; every second of these above four decades). Zeros have a separate bin.

**Visibility.** Users see the figures of all jobs that they may see individually. Of other jobs,
users other than staff see:

- the number of jobs, if it is at least {MIN_GROUP}, of {MIN_OWNERS} or more users, of which none
  has more than {MAX_SHARE:.0%} of the jobs, rounded to a multiple of {MIN_GROUP};
- percentiles with at least {MIN_GROUP} values on either side, of metrics whose known values are
  of such a group, too;
- histogram bars of at least {MIN_GROUP} jobs, rounded to a multiple of {MIN_GROUP}, without the
  {MIN_GROUP - 1} smallest and {MIN_GROUP - 1} largest values;
- the rank of their own job among them, in steps of 0.05.

Without such a group nothing is shown. This is a threshold rule with the dominance rule
(1, {MAX_SHARE:.0%}) of statistical disclosure control (Hundepool et al., 2012).

Minimum and maximum are values of single jobs and are not shown. Mean and deviation are not shown,
because two populations that differ by one job would reveal its value. Filters for other jobs are
limited to cluster, queue, time, size, state and quality. Times are widened to whole days of the
site's zone.

**Rounding.** Values of other users' jobs are rounded to {DIGITS} significant digits, halves away
from zero, before percentiles, histograms and ranks are computed. No combination of ranges,
populations and own jobs therefore reveals more about a job than its rounded value. Linear bins
are at least as wide as the rounding.

**Sums.** Sums over others need {MIN_GROUP} jobs of {MIN_OWNERS} users, of which none has more than
{MAX_SHARE:.0%} of the sum: each step of the overview, each figure, kind of RPC and slow
interval of an incident, and the nodes in use. A process or host outside jobs counts as one user.
They are rounded. Other sums are hidden, not zero; shares and means use the shown sums.

**PanDA jobs.** With PanDA jobs as the unit, n is their number. They are filtered by their records
and by figures of their batch job. A batch job's value counts once per PanDA job; the table shows
the number of batch jobs. The *failed share* is failed / (finished + failed). Figures of other
users' PanDA jobs need {MIN_GROUP} batch jobs, exclude all values of batch jobs (a few of these may
contain hundreds of PanDA jobs), and are filtered only by cluster, time, site and state.

## Load ramp

A load ramp relates the metrics of selected jobs to their concurrency: the number of running jobs,
of pilots (the batch jobs of PanDA jobs), or of their nodes. Only the selected jobs count.

- The **load** of a job is the mean concurrency over time after its start, over the median run time
  of all selected jobs and at most until the end of the period. The length is the same for all jobs:
  a mean over its own run would depend on the length of the run. For the same reason, the job itself
  counts for all of this time. Only ended jobs have values.
- **MDS latency** is by hour: time of all requests of the metadata servers from arrival to end /
  requests, in traces (rpctrace). Hours without a trace are estimated from service statistics
  (mds_stats): wait in the queue + mean time of the kinds that the server times. The load of an hour
  is its mean concurrency; hours in which none of the jobs ran are left out. With a filter by
  cluster, only servers of its filesystems count. It is for staff: in a calm hour, all requests may
  be of a single user.
- Bins have equal widths of the load, at most {MAX_BINS}; bins of fewer than {MIN_VALUES} values are
  joined. Their intervals (95 %) are Student's, with the standard error of medians over resampled
  days. Days are local days of the starts.
- The **conclusion** compares the median of the quarter of values at the lowest load with that at
  the highest, as [comparisons](comparisons.md) do: jobs are weighted to one mix of applications
  and node counts. It needs {MIN_JOBS} jobs on {MIN_DAYS} days in each quarter, {MIN_RANGE:g} times
  the load, and jobs of the same kinds at both loads. A change is visible if its interval excludes
  zero. Its cause may be another than the load.
- The correlation is Spearman's between daily mean load and daily median, with the interval of
  Bonett and Wright.

## Similar jobs

Similar to a job are the jobs of its cluster and size class (1, 2-3, 4-7, ... nodes) that started in
the 30 days before the UTC day of its start: a day of storms does not make storms usual. Jobs of
poor quality are excluded, and jobs with a current flag of severity warning or abuse. If at least
{MIN_SAME_NAME} of them have its user and name, only these are similar. Job pages show the job's
rank and the quartiles of similar jobs, from {MIN_GROUP} known values. Rules compare with their
median, unless it could reveal other users' jobs to an owner: the [rule for other users'
jobs](#populations) holds for the jobs of all others, whichever owner reads it.

## RPC report

An RPC report has counts, rates and times of the RPCs of a launch, a job or another principal in a
range. The range is widened to whole windows of 10 s. A rate is the count divided by the traced
seconds in the range. For a whole trace inside the range, these are its own extent, from first to
last record. Service time is time in the handler; queue time is arrival to start of handling. Both
cover timed RPCs only: lines without a timing tail are counted but not timed.

## Impact

{_IMPACT}

Pages call it *extra wait of others*. *Example*: a server handles 20 requests a second. Alice's job
sends 37 a second for 20 s, and Bob's sends 3 a second. For 44 s, requests queue, and Bob's wait
1,300 s in total. Without Alice, they would not have waited. The impact of Alice's job is 1,300 s.

- *Group*: a job, a host or process outside jobs, or all jobs of a user, a project or an application
  (user and job name without numbers).
- *Others*: the jobs of other users; for a project, the jobs outside the project.
- *Busier owners*: users with more than {BUSIER_TIMES:g} times the group's work in the queue. They
  cause their own waiting, so it does not count.
- *Not counted*: pings, which clients send automatically, and requests outside jobs (system daemons,
  log-in nodes, no job id). No user waits for them. Their waiting is stored and shown separately.
- *By job id alone*: requests with a job's id from a node that jobs of several owners share, that
  another owner's job holds in the minute before or after the job, that forwards the I/O of others,
  or that is unknown, unless the id has the owner's user id or, in
  estimates, the job's other nodes sent as many. They cause no impact of the job or its groups,
  because others can send them. Where they wait, their job's user is one of the users who waited.
  Estimates count so at most what the server's capacity allows in the
  seconds in which others' jobs share a node.
- *Wait above usual* is another figure: time of requests beyond the usual time, from any cause.

On a traced server impact is *measured*, elsewhere it is [estimated](#estimated-impact). The impact
analysis of a range and an incident list its queues. The page of a queue shows how long requests
waited in each second, with and without a group.

**Visibility.** Users see the share of work and the extra wait of their own jobs and groups, in
flags, mails and pages alike, with two significant digits, because they include others' requests.
Flags have such figures for staff, too. If rounding would move a figure to the other side of its
threshold, it is the threshold. The page of a queue shows users one group, the widest of theirs. The
waiting of all requests, the number of users who waited, and the figures of others by second are
shown where the [rule for other users' jobs](#populations) holds; mails name the number under the
same rule.

1. *Demand*: requests by second of arrival and sender. Their work is their usual time. Demand is
   known around seconds in which requests waited longer in the queue than in the handler.
2. *Capacity*: the median work in a second inside the queues of the day before the end of a queue.
   Of these seconds only the typical ones count: those within {TYPICAL:.0%} of each other that did
   most of the work. Without a baseline the capacity is unknown, and so it is if the server did more
   while nothing waited: then requests inside queues took more work than usual. If a busy queue does
   more, or up to {TYPICAL:.0%} less, its work is scaled to the capacity, because usual times do not
   fit every mix of requests. Differences up to {CHANCE:.0%} are left.
3. *Held requests*: clients limit their requests in flight. At the limit they send the next request
   when an answer arrives, so their requests show the pace of the server. Such requests move to the
   beginning of that time: at the sender's rate before, or immediately if it sent less. A server is
   full at {FULL_SHARE:.0%} of its capacity. The limit is learned from the busiest senders of full
   seconds; half of the limit counts as reached, unless the requests in flight still become more.
4. *Queue*: it begins when more work arrives than the server can do, and ends when the last request
   has waited. When the work that is left rises to {DRAINED:g} s, the next queue begins, so a queue
   that grows slowly may be listed as two. A full server serves senders in proportion to their
   requests at the server.
5. *Replay*: the queue is served with all senders, and again without the group. This gives the share
   of waiting that others are spared. The share times others' measured waiting, from the group's
   first request on, is the impact. Measured waiting is the time from arrival to end beyond the
   usual time, without blocked time.
6. *Bystanders*: a group has no impact with less than {MIN_WORK:.0%} of the queue's work, or if
   others are spared less than {MIN_SPARED:.0%} of their waiting. Nor has a *steady* group: it works
   less than {STEADY_TIMES:g} times as much as in the last {BEFORE_S:.0f} s without a queue, and
   without the senders that are not steady, requests would wait less than {MOST_STEADY:.0%} as long;
   or the server had received no requests for {SILENT_S:g} s just before the queue. A group that
   adds {MOST_ADDED:.0%} of all work that is added, and {MORE_TIMES:g} times its usual share, is not
   steady. Of several groups, the narrowest of a sender decides.
7. *Several causes*: of two storms that each block the server, removing one spares little. So the
   impact is at least the waiting that the group alone adds for the senders of no large group, if
   that is {MIN_SPARED:.0%} of their waiting with the group. Large groups have {MIN_WORK:.0%} of the
   work, without that of narrower large groups in them. Many small senders may be a large group
   together, for example a project: then their waiting does not count.

A queue is evaluated when it has drained: the requests of {OPEN_S:g} s and {OPEN_SHARE:.0%} of its
length after its end are known. A longer one is evaluated after {YOUNG_S:g} s. Pages also show a
queue that reaches the end of the trace, and say that no flag uses it. If more than
{MOST_UNTRACED:.0%} of a queue was not traced, its impact is *estimated*; if as much of it is in
windows of which more than {MOST_UNTRACED:.0%} of the RPCs have no times, it is unknown. Minutes
without a queue are evaluated like queues; there, requests wait as with random arrivals. *Blocked
time* of a sender in a second is
``service time - {BLOCKED_TIMES:g} x slowness x usual time of its requests``, if
positive: these wait for a lock. *Slowness* is service time / work of the busiest sender, at least
1. Impact is stored by 10 s, from 0.01 s on, where all RPCs took at least
{EVERY_SLOW_WINDOW.enter} times the usual time. The impacts of several groups may add up to more
than the waiting, because a queue may need more than one group.

### One queue by hand

The CSV of a queue's page has a row for each second until the replay of the queue has drained, some
seconds after its end. Work is in seconds of an idle server.

The work of held requests (step 3) is in the second to which it moved. Numbers of requests, and the
chart of work, are of their arrival.

| column | meaning |
|---|---|
| `group_work_s`, `group_requests` | work of the group, and its requests |
| `rest_work_s` | of the group's owner and busier owners: their waiting does not count |
| `others_work_s`, `others_requests` | of all others that do not block, with pings and daemons |
| `blocking_work_s` | of groups that block the server, too: left out if `impact_is` is *alone* |
| `capacity_s` | work that the server does |
| `measured_wait_s` | measured waiting of others' requests that arrived |
| `wait_s`, `wait_without_s` | waiting of one request with and without the group, for the chart |
| `impact_s` | its part of the impact: of users' requests |
| `outside_s` | the same of pings, daemons and requests without a job id |

1. For each row: *pending* = left in the row before (0 in the first) + `group_work_s` +
   `rest_work_s` + `others_work_s` + `blocking_work_s`. *Served* = `capacity_s` / pending, at most
   1. *Left* = pending x (1 - served).
2. *Wait* = (left in the row before + left) / 2 / `capacity_s`.
3. *Others pending* = others left in the row before + `others_work_s`. *Others left* = this x
   (1 - served).
4. *Others' waiting* = others pending x served x wait / mean work of a request (the sum of
   `others_work_s` / the sum of `others_requests`, both of all rows).
5. Sum it from the first row with `group_work_s` above 0 on: *all*. Repeat steps 1 to 5 without
   `blocking_work_s`: *with*. Repeat them without `blocking_work_s` and `group_work_s`: *without*.
6. Extra wait = (with - without) x *scale*. *Scale* is the sum of `measured_wait_s` from that row on
   / all, at most {MOST_SCALE:g}. It has no effect if no request waits without the group. The page
   and the JSON have another scale if senders reach their limits of requests in flight, which the
   CSV does not have.
7. Impact = extra wait x `users_share` of the JSON: of others' waiting, the part of users' requests.
   The rest is `outside_s`. The sums of both columns differ from this by less than 5 %, unless
   senders reach these limits, or the queue lasts a few seconds: in a simulated set, a quarter of
   the queues differed by more than a factor of two, the worst by 14. Waiting without a backlog is
   in the impact only.

### Shares and usual times

Pages show two shares of work. The *share of work while slow* (home, overview and the pages of
servers, users, projects and jobs) is a group's part of the work in the queues in which it had
impact, weighted by its impact; estimated: in these windows. Shares of several groups refer to
different queues, so their sum may exceed 100 %. The *share of work in range* (impact analysis and
incidents) is its part of all work in the range, slow or not.

*Usual times* are the baseline of a server, service and opcode. This is the median of the mean times
(arrival to end) in the windows of the four weeks before, restricted to windows in which the service
had at most the median number of RPCs. Slow intervals are excluded, so an incident does not become
usual. They are slow relative to the previous baseline; without a previous baseline, relative to the
medians of all windows. The baseline is computed daily, and every ten minutes while less than a day
was traced or windows are too few. A range is evaluated with the baseline of its start; impact by
window, hour by hour. Staff may pin another value. With fewer than
{MIN_BASELINE_WINDOWS:,} such windows the baseline is unknown. RPCs of that kind are then excluded
from the wait above usual; in a replay, their usual time is their service time, divided by how much
longer than usual the server served others in that second. The share of RPCs with a known baseline
is shown.

### Episodes

An *episode* of a group at a server is the time from its first to its last window with impact, with
pauses of up to {_SLOWNESS.max_pause.seconds // 60} minutes. On a traced server, windows are of the
time when the waiting requests arrived: the queue ends later, when they have waited. Its figures:

- *extra wait of others*: its impact, in seconds;
- *mean over the episode*: the time of others' RPCs, from arrival to end, over the usual time of as
  many RPCs of the same kinds, in all its windows with impact together;
- *worst 10 s*: the same ratio in the window in which it is highest;
- *share of work while slow*: the group's part of the work in these windows.

Windows without impact have no figures and do not count. While an episode continues, its interval
ends with the latest complete window with impact; once it is over, its figures no longer change. The
home page quotes, for each server, the user, process, host or load without a known job with the
largest impact in the five minutes before the end of the evaluated data, with its worst episode that
reaches these five minutes, and the job that causes at least 80 % of a user's impact. It names none
with less than 10 % of the extra wait of others: then there is no single cause. Episodes are
followed for a day back. *Evaluated until* is the end of the data that these figures include:
windows that await attribution or evaluation come later. Older than two minutes, they leave the
state unknown. The ratio of the latest 30 s is shown too. The *worst queue* of an episode is the one
with its largest impact: the linked page shows its own interval and impact. Without a queue there is
no link. The factor of a [slow interval](#slow-intervals) is of all RPCs, the cause's own included.

### Impact in words

The mail about a case, its page, the page of its flag and the texts of tickets have the same
sentences. They are about the worst queue of the (worst) flag's job, host or group:

- *server, from, to*: on a traced server, the queue with the largest impact within ten minutes of
  the worst window; elsewhere, or once its seconds have expired, the episode with the largest
  impact.
- *share*: the part of the work in the queue, or in the windows of the episode with impact.
- *other users*: the number of those whose requests waited, see *Visibility* above.
- *impact*, with two significant digits, and its interval: from impact / factor to impact x factor,
  or to what the requests of these users waited above usual, if that is less and their number is
  shown. Its ends are rounded outward. The factor is {PRECISION:g}; of estimates,
  {ESTIMATE_PRECISION:g}. In simulated sets, whose harm is known, 73 to 87 % of the measured values
  and 51 to 68 % of the estimated ones were within a factor of 2 (docs/performance.md, "Flag
  quality"). The interval of the server's capacity is narrower than such errors, so it is not used.
- *not counted*: pings, requests of system daemons, and requests without a job id.
- *in all slow intervals*: the impact in all episodes of the flag, if it is more than 1.1 times that
  of the queue.

A mail asks for less than {HARM_SHARE:.0%} of the server's capacity: the registered one, as in
rules, so that all storms have the same limit; without one, the knee on the page of its capacity,
or what its queues of the day before show. The rate next to it is the job's in the same queue or
episode, in RPCs (traces) or metadata operations (job_stats) a second; of a group, it is divided by
the jobs that ran at the same time.

### Under observation

Impact is known at the end of a queue, or after {YOUNG_S:g} s. Until then, home, overview and the
page of the server show who does most of the work: *under observation*. This is no finding: it has
no severity, opens no case and is never mailed. Whoever works while a queue drains is often not its
cause.

- A server is under observation if its RPCs took at least {_SLOWNESS.enter:g} times the usual time
  in a window of an interval (at least {_SLOWNESS.leave:g} times, with pauses of up to
  {_SLOWNESS.max_pause.seconds // 60} minutes) that reaches the latest 30 s of complete windows.
- Jobs, processes and hosts with at least {MIN_WORK:.0%} of the work are named: RPCs times their
  usual time, in the part of the interval in the last minute. If together the jobs of an
  application, user, campaign or project reach {MIN_WORK:.0%}, and the named ones do less than half
  of this work, the narrowest such group is named. Operations that are not attributed are listed
  as such.
- Where the server is not traced, or its trace has no baseline, job_stats, mds_stats and exports
  show the same, marked as estimated, up to the time that all of them cover.
- *Evaluated until* is the end of the latest complete window that is attributed. After two minutes
  without newer data, nothing is shown.
- An accusation replaces it: an open flag about impact (of hosts, also about load outside jobs),
  from severity warning on, of the subject with most of the work or of a group that includes it.
  Then the pages say *slow*, and name the accused with their share of the work. Impact of an earlier
  queue replaces nothing: the present one may have another cause.

Users who are not staff see the share of their own jobs, with two significant digits.
`/observed/?format=json` exports it.

### Estimated impact

Where a server was not traced, or its trace has no baseline yet, impact is estimated from
statistics that servers always keep, and is named so. It is not replayed: reads are too far apart to
show when a queue began. An interval between two reads is spread evenly over the windows of 10 s in
it. Intervals of more than `IOPORTAL_POLL_GAP` are gaps.

- The time of a request is its wait in the queue plus its handling (mds_stats, means of each service
  `mdt*`). Handling is the mean of the opcodes whose times the server counts, and 0 without any. Its
  baseline is the median over intervals with at most the median request rate, among the up to 300
  intervals that divide the day before. It needs at least {MIN_CALM_INTERVALS} such intervals.
- The load of a job, host or process is the time of its metadata operations (Lustre 2.14 and later),
  or their number where any time is unknown. Time beyond {COSTLIEST} times the time of the busiest
  principal's operations is blocked on locks, and no load. If a job's counters contain more than
  twice the operations that its nodes sent (export statistics), its id was used by others: only as
  many count as its nodes sent. Both are summed from two minutes before slow windows to two minutes
  after them. Jobs and processes are counted by job_stats, hosts outside jobs by exports. Operations
  of hosts are also counted by process, and those with other jobs' ids by these ids: in each
  interval of the exports, such loads are divided among the senders in proportion to their
  operations. Senders are the hosts, and the jobs whose nodes sent more than twice the operations
  with their id.
  What no sender explains remains the processes', or an unknown party's.
- All requests of an interval are assumed to take equally long, and each principal to send requests
  in proportion to its load.

Only windows with at least {EVERY_SLOW_WINDOW.leave:g} times the usual time are estimated. Traced
windows are measured only; a trace that arrives later replaces the estimate. The two minutes after
the end of a trace are not estimated, because its next records may not have arrived. Where job ids
have no user id, nor are the two minutes after the latest read of the exports. The waiting includes
time blocked on locks, because statistics of services do not separate it.

In each window of 10 s, impact follows from who sent more than usual:

1. *Excess*: the work of a principal above its mean of the last {CALM_WINDOWS} windows in the hour
   before the slow interval that were not slow. Without such windows, all work counts.
2. *Cause*: an owner with at least {CAUSE_SHARE:.0%} of all excess is known to be the cause. Of the
   owner's groups, those with at least {PART_SHARE:.0%} of it have impact. Owners are users; of
   projects and campaigns, projects.
3. *Impact*: ``1 - (1 - s)^2`` of the waiting of others, where *s* is the group's share of the
   excess. Waiting in a queue grows with the square of the requests that arrive together.

An RPC belongs to the window in which it ended. Impact is computed only for windows in which all
RPCs with a known baseline took at least {EVERY_SLOW_WINDOW.leave:g} times the usual time. Values
below 0.01 s in a window are not stored.

## Slow intervals

A server is slow while its RPCs take at least {_SLOWNESS.leave:g} times the usual time, if at
least one window reaches {_SLOWNESS.enter:g} times. Pauses of up to
{_SLOWNESS.max_pause.seconds // 60} minutes are included; intervals shorter than
{_SLOWNESS.min_duration.seconds} s are ignored.
"""


def page() -> str:
    """Return the page as Markdown."""
    return "".join([_HEAD, _TABLE, *map(_row, METRICS), _REST])


if __name__ == "__main__":
    print(page(), end="")  # noqa: T201  (standard output is the page)
