"""Answers of the portal, as far as the commands read them; unknown figures are None.

Times are in ISO 8601; in a look-up they are in UTC without a zone, as in PanDA.
"""

from typing import Any, NotRequired, TypedDict


class Job(TypedDict):
    """A batch job or a PanDA job, with the figures of its batch job (docs/api.md)."""

    batchid: str
    pandaid: NotRequired[int]  # of PanDA jobs
    jobname: NotRequired[str]  # of batch jobs, like owner, project and queue
    owner: NotRequired[str]
    project: NotRequired[str]
    queue: NotRequired[str]
    produsername: NotRequired[str]  # of PanDA jobs
    computingsite: NotRequired[str]
    jobstatus: str
    starttime: str | None
    endtime: str | None
    cluster: str
    simulated: bool
    batch_job: str | None  # None: a PanDA job in no known batch job
    shared_batch: bool
    npandajobs: int | None
    nodes: int | None
    read_bytes: int | None
    write_bytes: int | None
    open_total: int | None
    close_total: int | None
    mdops_total: int | None
    mdops_rate_max: float | None  # per second
    mdops_rate_max_interval_s: float | None
    mdt_share_max_pct: float | None
    op_mix: dict[str, float] | None
    impact_s: float | None
    impact_is_estimated: bool | None
    flags: list[str]
    quality: str | None
    bytes_quality: str | None
    url: str | None


class LookUp(TypedDict):
    """The jobs of a look-up. `unknown`: ids without a visible job, by parameter."""

    jobs: list[Job]
    nrecords: int
    unknown: dict[str, list[str]]
    warnings: list[str]


class Consumer(TypedDict):
    """A user, job, project, process or host, and its rates on all servers."""

    principal: str
    nodes: int | None
    latest_per_second: float | None  # None: a sum over other users' jobs
    mean_per_second: float | None
    share: float | None


class Load(TypedDict):
    """The load of the metadata servers in a range, busiest first; `rows` are rates by interval."""

    start: str
    end: str
    unit: str
    observed_s: float
    attributed_s: float
    simulated: bool
    top: list[Consumer]
    rows: list[dict[str, Any]]


class Case(TypedDict):
    """All flags of a rule about a user or host: the unit of triage."""

    id: int
    severity: str
    rule: str
    title: str
    name: str  # of the subject
    application: str
    owner: str
    filesystem: str | None
    state: str
    flags: int
    jobs: int
    highest: float | None
    threshold: float | None
    unit: str | None
    since: str
    until: str


class Arm(TypedDict):
    """One side of a comparison."""

    name: str
    filters: str
    start: str | None
    end: str | None
    jobs: int
    days: int


class Figures(TypedDict):
    """A metric in one arm; the effect is None in the first arm."""

    metric: str
    unit: str
    arm: str
    jobs: int
    median: float | None
    mean: float | None
    p90: float | None
    scale: str | None  # "ratio" or "difference" of medians
    estimate: float | None
    low: float | None
    high: float | None
    verdict: str | None
    refusal: str | None
    sentence: str | None


class Comparison(TypedDict):
    """Arms compared metric by metric. `conclusions`: sentences by arm, from the second on."""

    arms: list[Arm]
    counted: str
    conclusions: dict[str, list[str]]
    warnings: list[str]
    simulated: bool
    rows: list[Figures]
