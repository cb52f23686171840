"""The rules. A new rule is one file, one test file and one line here."""

from ioportal.rules.campaign import CAMPAIGN
from ioportal.rules.contradicted_job_ids import CONTRADICTED_JOB_IDS
from ioportal.rules.create_unlink_churn import CREATE_UNLINK_CHURN
from ioportal.rules.host_operations import HOST_OPERATIONS
from ioportal.rules.host_outside_jobs import HOST_OUTSIDE_JOBS
from ioportal.rules.impact import IMPACT, IMPACT_OF_MANY_JOBS
from ioportal.rules.lock_contention import LOCK_CONTENTION
from ioportal.rules.low_cpu_efficiency import LOW_CPU_EFFICIENCY
from ioportal.rules.metadata_operations import METADATA_OPERATIONS
from ioportal.rules.metadata_rate import METADATA_RATE
from ioportal.rules.open_close_imbalance import OPEN_CLOSE_IMBALANCE
from ioportal.rules.outlier import OUTLIER
from ioportal.rules.process_operations import PROCESS_OPERATIONS
from ioportal.rules.reads_above_usual import READS_ABOVE_USUAL
from ioportal.rules.rule import Rule
from ioportal.rules.small_reads import SMALL_READS
from ioportal.rules.small_writes import SMALL_WRITES
from ioportal.rules.startup_storm import STARTUP_STORM
from ioportal.rules.stat_storm import STAT_STORM
from ioportal.rules.unattributed import UNATTRIBUTED
from ioportal.rules.unexplained_enqueues import UNEXPLAINED_ENQUEUES

RULES: tuple[Rule, ...] = (
    IMPACT,
    IMPACT_OF_MANY_JOBS,
    METADATA_OPERATIONS,
    METADATA_RATE,
    STARTUP_STORM,
    STAT_STORM,
    CREATE_UNLINK_CHURN,
    OPEN_CLOSE_IMBALANCE,
    UNEXPLAINED_ENQUEUES,
    LOCK_CONTENTION,
    SMALL_READS,
    SMALL_WRITES,
    READS_ABOVE_USUAL,
    OUTLIER,
    LOW_CPU_EFFICIENCY,
    CAMPAIGN,
    HOST_OUTSIDE_JOBS,
    HOST_OPERATIONS,
    PROCESS_OPERATIONS,
    CONTRADICTED_JOB_IDS,
    UNATTRIBUTED,
)
BY_CODE = {rule.code: rule for rule in RULES}
