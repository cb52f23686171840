"""Published files of real sites reconcile when loaded twice and in two orders."""

from pathlib import Path

import pytest
from django.db import transaction

from tests import contents
from tests.collectors.batch.test_samples import SONAR_FORMAT

pytestmark = pytest.mark.long

SAMPLES = Path(__file__).parents[3] / "shared" / "samples"

CLUSTERS = (
    "cluster",
    "phillips",
    "robertson",
    "ub-hpc",
    "fox",
    "edge",
    "archer",
    "pool",
    "lsf",
    "sge",
)
MDTS = ("lustrefs-MDT0000", "ai400x2-MDT0000", "ai400-MDT0000", "fs-MDT0000")
OSTS = ("lustrefs-OST0002", "fs-OST0000", "fs-OST0001", "es01a-OST0001")

SITE = """
{clusters}
[[filesystem]]
name = "scratch"
clusters = [{names}]
[[server]]
name = "oss"
filesystem = "scratch"
kind = "oss"
{targets}
""".format(
    clusters="\n".join(
        f'[[cluster]]\nname = "{name}"\ntime_zone = "America/New_York"\nbatch = "slurm"\n'
        f"exec_hosts_are_compute_nodes = {'false' if name == 'archer' else 'true'}"
        for name in CLUSTERS
    ),
    names=", ".join(f'"{name}"' for name in CLUSTERS),
    targets="\n".join(
        f'[[target]]\nname = "{name}"\nfilesystem = "scratch"' for name in (*MDTS, *OSTS)
    ),
)

NOON, LATER = "2026-01-01T12:00:00Z", "2026-01-01T12:10:00Z"
MDT, OST = {"target": "lustrefs-MDT0000"}, {"target": "lustrefs-OST0002"}
OSS = {"server": "oss", "at": NOON}
SONAR = {"cluster": "fox", "columns": SONAR_FORMAT}
FILES = [
    ("rpctrace", "lustre_rpctrace/hpdd-discuss_2011_ost_io.txt", {"server": "oss"}),
    ("job_stats", "lustre_job_stats/gsi_mdt_lustrefs-MDT0000_job_stats", {"at": NOON, **MDT}),
    ("job_stats", "lustre_job_stats/hpe_mdt_lustrefs-MDT0000_job_stats", {"at": LATER, **MDT}),
    (
        "job_stats",
        "lustre_job_stats/hpe_obdfilter_lustrefs-OST0002_job_stats_headeronly",
        {"at": NOON, **OST},
    ),
    ("job_stats", "lustre_job_stats/telegraf_v2.12_obdfilter_job_stats", {"at": LATER, **OST}),
    (
        "job_stats",
        "lustre_job_stats/telegraf_v2.12_mdt_job_stats",
        {"at": NOON, "target": "ai400-MDT0000"},
    ),
    (
        "job_stats",
        "lustre_job_stats/manual_mdt_job_stats_procname_uid.txt",
        {"at": LATER, "target": "ai400-MDT0000"},
    ),
    ("job_stats", "lustre_job_stats/es01a_get_param_ost_mdt_SLURM_JOB.txt", {"at": NOON}),
    ("job_stats", "lustre_get_param/ex8761-lctl_with_jobstats.txt", {"at": NOON}),
    ("md_stats", "lustre_get_param/ex8761-lctl_with_jobstats.txt", {"at": NOON}),
    ("md_stats", "lustre_get_param/2.14.0_ddn133_exports.txt", {"at": NOON}),
    ("md_stats", "lustre_get_param/2.14.0_ddn145_stats_mixed_clocks.txt", {"at": LATER}),
    ("md_stats", "lustre_get_param/valid.txt", {"at": NOON}),
    ("md_stats", "lustre_get_param/valid_mds.txt", {"at": LATER}),
    ("md_stats", "lustre_get_param/valid_unhealthy_host.txt", {"at": LATER}),
    ("mds_stats", "lustre_stats/hpe_mds.MDS.mdt.stats", {"service": "mdt", **OSS}),
    ("mds_stats", "lustre_get_param/valid_mds.txt", {"at": LATER, "server": "oss"}),
    ("sacct", "slurm_sacct/xdmod_phillips.log", {"cluster": "phillips"}),
    ("sacct", "slurm_sacct/xdmod_slurm_non-ended-job-state.log", {"cluster": "phillips"}),
    ("sacct", "slurm_sacct/xdmod_robertson-filter-test.log", {"cluster": "robertson"}),
    ("sacct", "slurm_sacct/xdmod_slurm_job-arrays.log", {"cluster": "ub-hpc"}),
    ("sacct", "slurm_sacct/sonar_sacct-output.txt", SONAR),
    ("sacct", "slurm_sacct/sonar_tests_sacct_resource.txt", SONAR),
    ("sacct", "slurm_json/slurmdb_22.05.5_one_job.json", {"cluster": "cluster"}),
    ("sacct", "slurm_json/slurmdb_24.11.3_v0.0.42_jobs.json", {"cluster": "cluster"}),
    ("pbs", "pbs_accounting/ncar_pbsparse_records.txt", {"cluster": "edge"}),
    ("pbs", "pbs_accounting/qiudi_pbs_testdata", {"cluster": "edge"}),
    ("pbs", "pbs_accounting/xdmod_pbs_accounting-logs.log", {"cluster": "edge"}),
    ("alps", "alps/safe_ALPSData.txt", {"cluster": "archer"}),
    ("alps", "alps/safe_NewAlps.txt", {"cluster": "archer"}),
    ("htcondor", "htcondor_history/history.377260.0", {"cluster": "pool"}),
    ("htcondor", "htcondor_history/history.377270.0", {"cluster": "pool"}),
    ("htcondor", "htcondor_history/wmcore_running_job_ad_file", {"cluster": "pool"}),
    ("lsf", "lsf_acct/xdmod_lsf_accounting-logs.log", {"cluster": "lsf"}),
    ("sge", "sge_accounting/xdmod_sge_accounting-logs.log", {"cluster": "sge"}),
    ("panda", "panda/bigpanda_job_2014_fax.json", {"cluster": "edge"}),
]


@pytest.fixture
def samples(register):
    """Register the site of the samples and return all samples of these formats."""
    if not SAMPLES.exists():
        pytest.skip("../shared/samples is missing")
    register(SITE)
    return [(form, SAMPLES / name, options) for form, name, options in FILES]


def test_samples_reconcile_when_loaded_twice_and_in_two_orders(samples, ingest, reconcile, refresh):
    def load(files):
        accounts = {}
        with transaction.atomic():
            for form, path, options in files:
                account = ingest(form, path, **options)
                accounts.setdefault((form, path.name), []).append(account["lines"])
            refresh()
            assert reconcile() == f"{len(FILES)} segments reconcile."
            tables = contents.everything()
            transaction.set_rollback(True)
        return accounts, tables

    accounts, tables = load(samples + samples)
    accounts_again, tables_again = load(samples[::-1] + samples[::-1])

    assert tables == tables_again
    assert accounts == accounts_again
    for (_, name), lines in accounts.items():
        [path] = {path for _, path, _ in samples if path.name == name}
        if path.suffix == ".json":
            continue  # accounts of JSON count records, not lines
        text = path.read_bytes()
        assert set(lines) == {text.count(b"\n") + (not text.endswith(b"\n"))}
