"""The centre's ordinary users, their submissions and their jobs' properties."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simulator import site
from simulator.batch.jobs import Floats, Ints, Job, Kind
from simulator.clock import HOUR_S, local_time
from simulator.plan import Plan
from simulator.site import User

_LIMITS_S = tuple(hours * HOUR_S // 2 for hours in (1, 2, 4, 8, 12, 16, 24))  # requested limits
_EXITS = {0: 0.93, 1: 0.05, 139: 0.02}  # exit status: share
_TIMED_OUT = 271  # 256 + SIGTERM
_NUMBERED = 0.4  # share of job names that end in a number
_FIRST_USER = 0.45  # share of a profile's jobs by the first user; of the rest, by the second; ...
_LARGEST_SHARE = 4  # a job requests at most this part of a machine
_QUEUE_BACKLOG_S = 5 * HOUR_S  # submissions before the machine opened
# Submissions per hour of the (local) day, as a multiple of the mean.
_BY_HOUR = np.array([0.5] * 7 + [0.8, 1.2, 1.6, 1.8, 1.7, 1.5, 1.6, 1.7, 1.6, 1.4, 1.0] + [0.7] * 6)


@dataclass(frozen=True)
class Profile:
    """A kind of job and who submits it.

    Args:
        kind: label.
        users: users; the first submits most.
        names: job names.
        per_hour: mean number of submissions.
        nodes: node counts to choose from.
        weights: weight of each node count.
        median_s: median run time.
        spread: standard deviation of the logarithm of the run time.
        longest_s: maximum run time.
        busy_share: typical CPU time / (cores x wall time).
        cores: cores per node to choose from; none: whole nodes.
    """

    kind: Kind
    users: tuple[User, ...]
    names: tuple[str, ...]
    per_hour: float
    nodes: tuple[int, ...]
    weights: tuple[float, ...]
    median_s: float
    spread: float
    longest_s: int
    busy_share: float
    cores: tuple[int, ...] = ()


PROFILES = (
    Profile(
        Kind.SIMULATION,
        (
            User("mkessler", 10_233, "FUS104"),
            User("tanakay", 10_871, "CHM061"),
            User("rosalind", 11_902, "BIP112"),
            User("osei", 12_077, "CLI115"),
            User("dvorak", 12_415, "MAT049"),
            User("p_iyer", 13_020, "AST031"),
        ),
        ("plasma_edge", "md_prod", "wall_les", "ocean025", "alloy_scan", "sn_core", "restart"),
        per_hour=7.0,
        nodes=(16, 32, 64, 128, 256, 512, 1_024, 2_048, 4_096),
        weights=(0.24, 0.22, 0.2, 0.14, 0.1, 0.06, 0.03, 0.008, 0.002),
        median_s=2.1 * HOUR_S,
        spread=0.7,
        longest_s=12 * HOUR_S,
        busy_share=0.93,
    ),
    Profile(
        Kind.CHECKPOINTER,
        (
            User("haugen", 10_544, "TUR017"),
            User("lindqvst", 11_340, "CSC091"),
            User("bbarros", 12_981, "NPH008"),
        ),
        ("dns_4096", "lattice_96", "ckpt_stress"),
        per_hour=0.6,
        nodes=(256, 512, 1_024, 2_000),
        weights=(0.45, 0.35, 0.15, 0.05),
        median_s=3.2 * HOUR_S,
        spread=0.5,
        longest_s=12 * HOUR_S,
        busy_share=0.9,
    ),
    Profile(
        Kind.SCANNER,
        (User("fmoreau", 11_087, "CLI115"), User("annikab", 13_377, "GEO022")),
        ("catalogue", "find_stale", "du_projects"),
        per_hour=0.5,
        nodes=(1, 2, 4),
        weights=(0.6, 0.3, 0.1),
        median_s=0.8 * HOUR_S,
        spread=0.5,
        longest_s=2 * HOUR_S,
        busy_share=0.05,
    ),
    Profile(
        Kind.SMALL_FILES,
        (User("geneve", 12_260, "BIP112"), User("wuxian", 13_818, "CSC200")),
        ("blast_split", "tiles", "extract_frames"),
        per_hour=0.7,
        nodes=(8, 16, 32, 64),
        weights=(0.4, 0.3, 0.2, 0.1),
        median_s=1.1 * HOUR_S,
        spread=0.5,
        longest_s=6 * HOUR_S,
        busy_share=0.4,
    ),
    Profile(
        Kind.ENSEMBLE,
        (User("sarkisov", 10_699, "ENG103"), User("nkemelu", 13_105, "MAT049")),
        ("uq_sweep", "dakota_run", "screening"),
        per_hour=0.7,
        nodes=(16, 32, 64, 128),
        weights=(0.35, 0.35, 0.2, 0.1),
        median_s=1.8 * HOUR_S,
        spread=0.5,
        longest_s=8 * HOUR_S,
        busy_share=0.7,
    ),
    Profile(
        Kind.ANALYSIS,
        (
            User("osei", 12_077, "CLI115"),
            User("p_iyer", 13_020, "AST031"),
            User("yolanda", 13_551, "CHM061"),
            User("quist", 13_902, "FUS104"),
        ),
        ("plot", "post", "merge_h5", "debug_run", "viz_movie"),
        per_hour=4.0,
        nodes=(1, 2, 4, 8, 16),
        weights=(0.4, 0.25, 0.15, 0.12, 0.08),
        median_s=0.4 * HOUR_S,
        spread=0.8,
        longest_s=2 * HOUR_S,
        busy_share=0.5,
    ),
)

# Analysis cluster: parts of nodes, by users of the machine.
ANALYSIS_PROFILES = (
    Profile(
        Kind.ANALYSIS,
        (
            User("yolanda", 13_551, "CHM061"),
            User("quist", 13_902, "FUS104"),
            User("osei", 12_077, "CLI115"),
            User("zhou_l", 14_020, "GEO022"),
        ),
        ("notebook", "reduce", "fit_peaks", "plot", "h5_to_csv"),
        per_hour=4.5,
        nodes=(1, 2),
        weights=(0.95, 0.05),
        median_s=2.5 * HOUR_S,
        spread=0.7,
        longest_s=12 * HOUR_S,
        busy_share=0.45,
        cores=(1, 2, 4, 8),
    ),
    Profile(
        Kind.SMALL_FILES,
        (User("geneve", 12_260, "BIP112"), User("annikab", 13_377, "GEO022")),
        ("split_reads", "tiles", "unpack"),
        per_hour=1.2,
        nodes=(1, 2, 4),
        weights=(0.7, 0.2, 0.1),
        median_s=1.5 * HOUR_S,
        spread=0.6,
        longest_s=8 * HOUR_S,
        busy_share=0.3,
        cores=(2, 4, 8, 16),
    ),
    Profile(
        Kind.SIMULATION,
        (User("dvorak", 12_415, "MAT049"), User("rosalind", 11_902, "BIP112")),
        ("post_md", "render"),
        per_hour=1.0,
        nodes=(2, 4, 8),
        weights=(0.5, 0.3, 0.2),
        median_s=2.0 * HOUR_S,
        spread=0.6,
        longest_s=12 * HOUR_S,
        busy_share=0.85,
        cores=(16,),
    ),
)


def jobs(plan: Plan, rng: np.random.Generator) -> list[Job]:
    """Return the machine's ordinary jobs in order of submission; their numbers are still 0."""
    return _jobs(PROFILES, plan, rng)


def analysis_jobs(plan: Plan, rng: np.random.Generator) -> list[Job]:
    """Return the analysis cluster's jobs in order of submission; their numbers are still 0."""
    return _jobs(ANALYSIS_PROFILES, plan, rng)


def analysis_job(submitted: int, rng: np.random.Generator) -> Job:
    """Return a job submitted to the analysis cluster at a given time."""
    often = np.array([profile.per_hour for profile in ANALYSIS_PROFILES])
    profile = ANALYSIS_PROFILES[rng.choice(len(often), p=often / often.sum())]
    return _job(profile, submitted, max(profile.nodes), rng)


def _jobs(profiles: Sequence[Profile], plan: Plan, rng: np.random.Generator) -> list[Job]:
    hours = np.arange(plan.start - _QUEUE_BACKLOG_S, plan.end, HOUR_S)
    shape = _by_hour(hours)
    submissions = [
        _job(profile, int(hour + second), plan.node_count // _LARGEST_SHARE, rng)
        for profile in profiles
        for hour, submissions in zip(
            hours, rng.poisson(profile.per_hour * plan.rate * shape), strict=True
        )
        for second in rng.integers(HOUR_S, size=submissions)
    ]
    return sorted(submissions, key=lambda job: job.submitted)


def _by_hour(hours: Ints) -> Floats:
    shape: Floats = _BY_HOUR[[local_time(hour).hour for hour in hours.tolist()]]
    return shape / float(_BY_HOUR.mean())


def _job(profile: Profile, submitted: int, max_nodes: int, rng: np.random.Generator) -> Job:
    needed_s = int(
        np.clip(profile.median_s * rng.lognormal(0, profile.spread), 240, profile.longest_s)
    )
    # Some requested limits are too low, and the jobs are stopped there.
    limit_s = next(
        (limit for limit in _LIMITS_S if limit >= needed_s * rng.uniform(0.9, 1.7)), _LIMITS_S[-1]
    )
    user = min(int(rng.geometric(_FIRST_USER)) - 1, len(profile.users) - 1)
    name = str(rng.choice(profile.names))
    status = int(rng.choice(list(_EXITS), p=list(_EXITS.values())))
    shared = bool(profile.cores)
    debug = profile.kind is Kind.ANALYSIS and limit_s <= HOUR_S and not shared
    return Job(
        number=0,
        user=profile.users[user],
        name=f"{name}_{rng.integers(1, 40)}" if rng.random() < _NUMBERED else name,
        queue="debug" if debug else "batch",
        kind=profile.kind,
        node_count=min(int(rng.choice(profile.nodes, p=profile.weights)), max_nodes),
        limit_s=limit_s,
        runtime_s=min(needed_s, limit_s),
        submitted=submitted,
        cluster=site.ANALYSIS_CLUSTER if shared else site.CLUSTER,
        cores_per_node=int(rng.choice(profile.cores)) if shared else site.CORES_PER_NODE,
        exit_status=_TIMED_OUT if needed_s > limit_s else status,
        busy_share=float(np.clip(profile.busy_share * rng.normal(1, 0.06), 0.01, 0.99)),
    )
