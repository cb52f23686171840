"""docs/metrics.md, written by ``python -m ioportal.analysis.metrics_page > docs/metrics.md``."""

from collectors.tables import METADATA_OPERATIONS
from ioportal.analysis import quality
from ioportal.analysis.metrics import METRICS, Metric

_HEAD = """# Metrics

Every figure that ioportal shows about a job is defined here, once. Code, pages and exports use
these names. A figure that is not known is empty, never zero.

This page is written from `ioportal/analysis/metrics.py`; a test holds the two together.

**Sources.** *accounting*: the batch system's record of the job. *job_stats*: counters by job id
that the MDTs and OSTs keep; differences between reads are I/O windows. *rpctrace*: the debug log of
a server; 10-second RPC windows. Metadata operations (job_stats) and metadata RPCs (rpctrace) are
two different metrics: one open is one operation and may be several RPCs, or none that a trace can
tell from a look-up. They are never added, and one never stands in for the other.

**Rates** divide by observed seconds only: time between two reads of the counters that are at most
`IOPORTAL_POLL_GAP` apart, or time that a trace covers. The first read of a target gives totals of
unknown duration: they count in totals and are kept out of rates.

## Figures of a job

| name | title | unit | source | formula | caveat |
|---|---|---|---|---|---|
"""

_REST = f"""
Operations by kind are kept besides: {", ".join(f"`count_{kind}`" for kind in METADATA_OPERATIONS)}.
`samedir_rename` and `crossdir_rename` are counted inside `rename`.

## Quality

*Good*: the counters of the metadata targets were observed in at least {quality.GOOD_COVERED:.0%} of
the run, at most {quality.GOOD_AMBIGUOUS:.0%} of the operations may be another job's, and no counter
fell for no known reason. *Partial*: observed in at least {quality.PARTIAL_COVERED:.0%}, at most
{quality.PARTIAL_AMBIGUOUS:.0%} ambiguous. *Poor*: anything below. The reasons are stored with the
grade and shown beside it.

## RPC report

Counts, rates and times of the RPCs of a launch, a job or another principal in a range. A range
is widened to whole windows of 10 s. A rate is the count divided by the traced seconds inside it;
where a whole trace lies in the range, that is its own extent, first record to last. Service time is
time in the handler; queue time is arrival to start of handling. Both are over timed RPCs: lines
without a timing tail count and are not timed.
"""


def page() -> str:
    """Return the page as Markdown."""
    return _HEAD + "".join(map(_row, METRICS)) + _REST


def _row(metric: Metric) -> str:
    return (
        f"| `{metric.name}` | {metric.title} | {metric.unit} | {metric.source} | {metric.formula} "
        f"| {metric.caveat} |\n"
    )


if __name__ == "__main__":
    print(page(), end="")  # noqa: T201  (a program's output)
