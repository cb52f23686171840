"""The formats: an explicit table. A format is one module, one test file, and one line here."""

from collectors.batch.alps import ALPS
from collectors.batch.htcondor import HTCONDOR
from collectors.batch.lsf import LSF
from collectors.batch.pbs import PBS
from collectors.batch.sacct import SACCT
from collectors.batch.sge import SGE
from collectors.batch.squeue import SQUEUE
from collectors.experiments.cmssw_fjr import CMSSW_FJR
from collectors.experiments.cmssw_log import CMSSW_LOG
from collectors.experiments.ior import IOR
from collectors.experiments.pair_series import PAIR_SERIES
from collectors.experiments.prmon import PRMON, PRMON_JSON
from collectors.experiments.run_table import RUN_TABLE
from collectors.experiments.strace import STRACE
from collectors.format import Format
from collectors.lustre.export_stats import EXPORT_STATS
from collectors.lustre.job_stats import JOB_STATS
from collectors.lustre.md_stats import MD_STATS
from collectors.lustre.req_history import REQ_HISTORY
from collectors.lustre.rpc_trace import RPC_TRACE
from collectors.lustre.service_stats import SERVICE_STATS
from collectors.nfs.nfsd import NFSD
from collectors.panda.jobs import PANDA
from collectors.tables import Table

FORMATS: tuple[Format, ...] = (
    RPC_TRACE,
    REQ_HISTORY,
    JOB_STATS,
    MD_STATS,
    EXPORT_STATS,
    SERVICE_STATS,
    NFSD,
    SACCT,
    SQUEUE,
    PBS,
    HTCONDOR,
    LSF,
    SGE,
    ALPS,
    PANDA,
    RUN_TABLE,
    IOR,
    PAIR_SERIES,
    CMSSW_FJR,
    CMSSW_LOG,
    PRMON,
    PRMON_JSON,
    STRACE,
)
BY_NAME = {form.name: form for form in FORMATS}


def recognised(head: bytes) -> Format | None:
    """Return the format of an experiment's file with these first bytes; None: unknown."""
    return next((form for form in FORMATS if form.head and form.head.search(head)), None)


def names(table: Table) -> list[str]:
    """Return the names of the formats whose files give rows of `table`."""
    return [form.name for form in FORMATS if form.table is table]
