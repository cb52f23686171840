"""The story of the centre: dated steps, and the campaign's eras between them.

Order and sizes come from the reports on PanDA at OLCF. Days come from the reports where they give
one; otherwise a day was chosen in the reported order (`Step.dated`).
"""

from dataclasses import dataclass

from simulator.clock import local

BEGIN = local(2016, 10, 17)
END = local(2017, 10, 31)

WEEK = (local(2016, 10, 25), local(2016, 11, 1))  # of the table of 1,175 jobs
SOFTWARE_ON_NFS = local(2016, 11, 15, "08:00:00")
TWENTY_SLOTS = local(2017, 5, 1, "08:00:00")
SLOW_JUNE = local(2017, 6, 12, "08:00:00")
PAUSED = local(2017, 7, 6, "07:30:00")
RESUMED = local(2017, 7, 6, "09:50:00")  # with wide stripes: the crisis
STOPPED = local(2017, 7, 6, "16:00:00")  # requested by the centre
MITIGATED = local(2017, 7, 6, "23:20:00")
SQLITE_ON_RAM_DISK = local(2017, 7, 18, "08:00:00")
CLEAN_ENVIRONMENT = local(2017, 8, 17, "08:00:00")
SEARCH_PATH_FIXED = local(2017, 8, 19, "08:00:00")
WORK_ON_RAM_DISK = local(2017, 8, 29, "08:00:00")
GREEN_LIGHT = local(2017, 9, 11, "08:00:00")
FIFTEEN_SLOTS = local(2017, 9, 15, "08:00:00")
UPGRADED = local(2017, 10, 10, "08:00:00")

# Three detailed days: the last day before the crisis, the crisis, and the day after.
FULL_DAYS = (local(2017, 7, 5), local(2017, 7, 8))

# Maximum number of concurrent pilots, and since when.
SLOTS = (
    (BEGIN, 3),
    (SOFTWARE_ON_NFS, 5),
    (TWENTY_SLOTS, 20),
    (PAUSED, 6),
    (RESUMED, 20),
    (STOPPED, 1),
    (MITIGATED, 5),
    (GREEN_LIGHT, 7),
    (local(2017, 9, 12, "08:00:00"), 9),
    (local(2017, 9, 13, "08:00:00"), 11),
    (local(2017, 9, 14, "08:00:00"), 13),
    (FIFTEEN_SLOTS, 15),
)


@dataclass(frozen=True)
class Operations:
    """Metadata operations of one pilot on the MDT, per node."""

    opens: float
    closes: float
    cost: float  # of all other kinds, as a multiple of the usual cost before the crisis


@dataclass(frozen=True)
class Era:
    """Properties of pilots in a period.

    Args:
        name: name of their set-up.
        since: start of the era.
        operations: operations per node.
        runtime_s: range of run times.
        limit_s: requested wall time.
        sizes: node counts, equally likely.
        validation_s: mean duration of a payload's set-up (software validation).
        nfs_operations: operations of one payload on the NFS server.
        input_gb: bytes read by each node.
        output_gb: bytes written by each node.
        failing: share of payloads that fail.
        phases: (from, to, share of the operations), from and to as shares of the run time.
        conflicts: share of its enqueues that wait for another client's lock.
        copy_in_s: range of stage-in times to the RAM disk; (0, 0): none.
    """

    name: str
    since: int
    operations: Operations
    runtime_s: tuple[int, int]
    limit_s: int
    sizes: tuple[int, ...]
    validation_s: int = 40
    nfs_operations: int = 924_403
    input_gb: float = 0.37
    output_gb: float = 0.17
    failing: float = 0.04
    phases: tuple[tuple[float, float, float], ...] = ()
    conflicts: float = 0.0
    copy_in_s: tuple[int, int] = (0, 0)

    @property
    def label(self) -> str:
        """Return the label of its pilots in the truth file."""
        return f"panda, {self.name}"


_SPIKED = (
    (0.0, 0.003, 0.03),
    (0.003, 0.02, 0.09),
    (0.02, 0.1, 0.2),
    (0.1, 0.95, 0.6),
    (0.95, 1.0, 0.08),
)
# Athena starts from Lustre: a fifth of the run, and most of the operations.
_START_FROM_LUSTRE = ((0.0, 0.02, 0.15), (0.02, 0.21, 0.55), (0.21, 0.97, 0.24), (0.97, 1.0, 0.06))
_SOLID = ((0.0, 0.05, 0.12), (0.05, 0.95, 0.8), (0.95, 1.0, 0.08))
_ENDS_ONLY = ((0.0, 0.01, 0.5), (0.01, 0.98, 0.05), (0.98, 1.0, 0.45))  # MPI wrapper; output

_SMALL = (15, 20, 30, 40, 50)
_MIXED = (15, 20, 30, 45, 62, 100)
_VARIED = (15, 15, 30, 30, 45, 62, 62, 100, 100, 150, 350)
_LARGE = (15, 30, 62, 100, 150, 150, 200, 200, 250, 250, 300, 300, 350)

_USUAL = Operations(opens=1_900, closes=450, cost=1.0)
_STRIPED = Operations(opens=2_850, closes=675, cost=1.5)
_CLEANED = Operations(opens=1_500, closes=355, cost=0.79)  # 1.9 times fewer
_FIXED = Operations(opens=712, closes=169, cost=0.375)  # 4 times fewer than before both changes

ERAS = (
    Era(
        "software on Lustre",
        BEGIN,
        Operations(opens=4_107, closes=958, cost=2.16),
        runtime_s=(5_700, 6_900),
        limit_s=7_500,
        sizes=_SMALL,
        validation_s=1_320,
        nfs_operations=0,
        phases=_START_FROM_LUSTRE,
    ),
    Era(
        "software on NFS",
        SOFTWARE_ON_NFS,
        Operations(opens=950, closes=225, cost=0.5),
        runtime_s=(1_350, 1_650),
        limit_s=3_600,
        sizes=_SMALL,
        phases=_SPIKED,
    ),
    Era(
        "larger payloads",
        TWENTY_SLOTS,
        _USUAL,
        runtime_s=(2_400, 3_600),
        limit_s=7_200,
        sizes=_MIXED,
        phases=_SPIKED,
    ),
    Era(
        "larger payloads, slow",
        SLOW_JUNE,
        _USUAL,
        runtime_s=(3_000, 7_400),
        limit_s=9_000,
        sizes=_MIXED,
        failing=0.11,
        phases=_SPIKED,
    ),
    Era(
        "wide stripes",
        RESUMED,
        Operations(opens=4_294, closes=1_017, cost=2.26),  # over 2 million on 300 nodes
        runtime_s=(19_000, 22_500),
        limit_s=28_800,
        sizes=_LARGE,
        failing=0.3,
        phases=_SPIKED,
        conflicts=0.12,
    ),
    Era(
        "one at a time",
        STOPPED,
        _USUAL,
        runtime_s=(5_700, 7_400),
        limit_s=9_000,
        sizes=_LARGE,
        phases=_SPIKED,
    ),
    Era(
        "one stripe",
        MITIGATED,
        _STRIPED,
        runtime_s=(2_300, 3_700),
        limit_s=7_200,
        sizes=_VARIED,
        phases=_SOLID,
    ),
    Era(
        "SQLite on RAM disk",
        SQLITE_ON_RAM_DISK,
        _STRIPED,
        runtime_s=(2_300, 3_700),
        limit_s=7_200,
        sizes=_VARIED,
        phases=_SOLID,
    ),
    Era(
        "clean environment",
        CLEAN_ENVIRONMENT,
        _CLEANED,
        runtime_s=(2_300, 3_700),
        limit_s=7_200,
        sizes=_VARIED,
        phases=_SOLID,
    ),
    Era(
        "search path fixed",
        SEARCH_PATH_FIXED,
        _FIXED,
        runtime_s=(2_300, 3_700),
        limit_s=7_200,
        sizes=_VARIED,
        phases=_SOLID,
    ),
    Era(
        "work on RAM disk",
        WORK_ON_RAM_DISK,
        Operations(opens=46, closes=44, cost=0.03),
        runtime_s=(2_300, 3_700),
        limit_s=7_200,
        sizes=_VARIED,
        failing=0.02,
        phases=_ENDS_ONLY,
        copy_in_s=(10, 18),
    ),
)


def era_at(moment: int) -> Era:
    """Return the era of pilots submitted at a given time."""
    return next((era for era in reversed(ERAS) if era.since <= moment), ERAS[0])


def era_named(name: str) -> Era:
    """Return an era by its name."""
    return next(era for era in ERAS if era.name == name)


def slots_at(moment: int) -> int:
    """Return the maximum number of concurrent pilots."""
    return next((slots for since, slots in reversed(SLOTS) if since <= moment), SLOTS[0][1])


@dataclass(frozen=True)
class Effect:
    """Effect of a step on a metric of the campaign's jobs: typical values before and after."""

    metric: str
    before: float
    after: float

    @property
    def ratio(self) -> float:
        """Return after / before."""
        return self.after / self.before


@dataclass(frozen=True)
class Step:
    """A change by people, or an event that affected them."""

    key: str
    at: int
    what: str
    dated: str  # "seeds": on that day; "chosen": in that order
    effects: tuple[Effect, ...]


def _opens(before: float, after: float) -> Effect:
    return Effect("opens_per_node", before, after)


def _slots(before: int, after: int) -> Effect:
    return Effect("slots", before, after)


STEPS = (
    Step(
        "software-on-nfs",
        SOFTWARE_ON_NFS,
        "The ATLAS release moves from Lustre to read-only NFS",
        "chosen",
        (
            Effect("duration_s", 6_300, 1_500),
            Effect("validation_s", 1_320, 40),
            _opens(4_107, 950),
        ),
    ),
    Step("twenty-slots", TWENTY_SLOTS, "Up to 20 pilots at once", "seeds", (_slots(5, 20),)),
    Step(
        "larger-payloads",
        TWENTY_SLOTS,
        "Payloads with more events",
        "chosen",
        (Effect("duration_s", 1_500, 3_000), _opens(950, 1_900)),
    ),
    Step(
        "slow-june",
        SLOW_JUNE,
        "Some jobs run 90 to 120 minutes, and more fail",
        "seeds",
        (Effect("duration_s", 3_000, 5_200), Effect("failed_share", 0.04, 0.11)),
    ),
    Step(
        "crisis",
        RESUMED,
        "Over 2 million metadata operations a job",
        "seeds",
        (_opens(1_900, 4_294), Effect("duration_s", 5_200, 20_750)),
    ),
    Step("five-slots", MITIGATED, "At most 5 pilots at once", "seeds", (_slots(20, 5),)),
    Step(
        "one-stripe",
        MITIGATED,
        "Working directories are striped over one target",
        "seeds",
        (_opens(4_294, 2_850), Effect("duration_s", 20_750, 3_000)),
    ),
    Step(
        "sqlite-on-ram-disk",
        SQLITE_ON_RAM_DISK,
        "SQLite files and input move to the nodes' RAM disk",
        "chosen",
        (_opens(2_850, 2_850), Effect("duration_s", 3_000, 3_000)),
    ),
    Step(
        "clean-environment",
        CLEAN_ENVIRONMENT,
        "Search paths of third parties leave the environment",
        "seeds",
        (_opens(2_850, 1_500),),
    ),
    Step(
        "search-path-fix",
        SEARCH_PATH_FIXED,
        "athena.py does not look in the working directory first",
        "seeds",
        (_opens(1_500, 712),),
    ),
    Step(
        "work-on-ram-disk",
        WORK_ON_RAM_DISK,
        "Working directories move to the nodes' RAM disk",
        "chosen",
        (_opens(712, 46), Effect("open_close_ratio", 712 / 169, 46 / 44)),
    ),
    Step(
        "fifteen-slots",
        GREEN_LIGHT,
        "From 5 to 15 pilots within a week",
        "seeds",
        (_slots(5, 15), Effect("duration_s", 3_000, 3_000)),
    ),
)
