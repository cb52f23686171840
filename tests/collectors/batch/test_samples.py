"""Real files, counted once more by grep and awk."""

import subprocess

import polars as pl
import pytest

from collectors.batch import alps, hostlists, htcondor, lsf, pbs, sacct, sge
from collectors.parsed import Account
from collectors.source import Source

# What sonar asks sacct for.
SONAR_FORMAT = (
    "JobID,JobIDRaw,User,Account,State,Start,End,AveCPU,AveDiskRead,AveDiskWrite,AveRSS,AveVMSize,"
    "ElapsedRaw,ExitCode,Layout,MaxRSS,MaxVMSize,MinCPU,ReqCPUS,ReqMem,ReqNodes,Reservation,Submit,"
    "Suspended,SystemCPU,TimelimitRaw,UserCPU,NodeList,Partition,AllocTRES,Priority,JobName"
)

SECONDS = r"""
function seconds(text,   parts, days, n) {
    n = split(text, parts, "-"); days = n > 1 ? parts[1] : 0
    split(parts[n], parts, ":")
    return days * 86400 + parts[1] * 3600 + parts[2] * 60 + parts[3]
}
"""


def counted(program, *arguments):
    """The number that a program prints; grep prints 0 and calls it a failure."""
    process = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    assert process.returncode in {0, 1}, process.stderr
    return int(process.stdout)


def grep(pattern, path):
    return counted("grep", "-cE", pattern, path)


def awk(script, path):
    return counted("awk", "-F|", SECONDS + script, path)


def run_seconds(table):
    return (table["ended_at"] - table["started_at"]).dt.total_seconds().sum()


def test_a_month_of_jobs_adds_up(sample, whole, new_york):
    path = sample("slurm_sacct", "xdmod_phillips.log")

    parsed = whole(sacct.parse(Source.open(path), new_york))

    assert parsed.account == Account(lines=grep("", path), accepted=grep("", path))
    jobs = parsed.table
    assert jobs["node_count"].sum() == awk("{ s += $18 } END { print s }", path)
    assert jobs["core_count"].sum() == awk("{ s += $19 } END { print s }", path)
    assert run_seconds(jobs) == awk("{ s += seconds($15) } END { print s }", path)
    assert jobs["time_limit_s"].sum() == awk("{ s += seconds($24) } END { print s }", path)
    assert jobs.filter(nodes="").height == grep(r"\|None assigned\|", path)
    for state in ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT"):
        assert jobs.filter(state=state.lower()).height == grep(rf"\|{state}( by [0-9]+)?\|", path)
    for nodes, node_count in (
        jobs.filter(pl.col("nodes") != "").select("nodes", "node_count").rows()
    ):
        assert len(hostlists.expand(nodes)) == node_count


@pytest.mark.parametrize(
    ("name", "indices"),
    [
        (
            "xdmod_slurm_job-arrays.log",
            ["100", "1-3", "1,5", "9-11,20", "91,100-102", "9-11,13,16-20"],
        ),
        ("xdmod_robertson-filter-test.log", [""]),
        ("xdmod_slurm_non-ended-job-state.log", ["", ""]),
    ],
)
def test_small_exports_are_read_completely(sample, whole, new_york, name, indices):
    path = sample("slurm_sacct", name)

    parsed = whole(sacct.parse(Source.open(path), new_york))

    assert parsed.account == Account(lines=grep("", path), accepted=grep("", path))
    assert parsed.table["array_index"].to_list() == indices
    assert parsed.table["node_count"].sum() == awk("{ s += $18 } END { print s }", path)


def test_jobs_that_have_not_ended_have_no_end(sample, whole, new_york):
    path = sample("slurm_sacct", "xdmod_slurm_non-ended-job-state.log")

    running, pending = whole(sacct.parse(Source.open(path), new_york)).table.to_dicts()

    assert (running["state"], running["ended_at"], running["nodes"]) == (
        "running",
        None,
        "cpn-k07-02-01",
    )
    assert (pending["state"], pending["started_at"], pending["nodes"]) == ("pending", None, "")


@pytest.mark.parametrize("name", ["sonar_sacct-output.txt", "sonar_tests_sacct_resource.txt"])
def test_an_export_with_other_columns_is_read(sample, whole, berlin, name):
    path = sample("slurm_sacct", name)

    parsed = whole(sacct.parse(Source.open(path), berlin, SONAR_FORMAT.split(",")))
    unnamed = whole(sacct.parse(Source.open(path), berlin))

    assert parsed.account == Account(lines=grep("", path), accepted=grep("", path))
    jobs = parsed.table
    assert jobs.filter(launch="").height == grep(r"^[0-9]+\|", path)
    assert jobs.filter(launch="batch").height == grep(r"^[0-9]+\.batch\|", path)
    ended = '$7 != "Unknown" { s += $13 } END { print s + 0 }'
    assert run_seconds(jobs) == awk(ended, path)
    cpus = r"match($30, /cpu=[0-9]+/) { s += substr($30, RSTART + 4, RLENGTH - 4) } END { print s }"
    assert jobs["core_count"].sum() == awk(cpus, path)
    assert unnamed.account == Account(lines=grep("", path), rejected=grep("", path))
    assert "32, expected: 26" in unnamed.rejects["reason"][0]


@pytest.mark.parametrize(
    "name",
    [
        "jobanalyzer_slurm-sacct_keyvalue.csv",
        "safe_slurm_job_completion.txt",
    ],
)
def test_other_slurm_formats_are_refused_line_by_line(sample, whole, berlin, name):
    path = sample("slurm_sacct", name)

    account = whole(sacct.parse(Source.open(path), berlin)).account

    assert account == Account(lines=grep("", path), rejected=grep("", path))


@pytest.mark.parametrize(
    ("name", "rejects"),
    [
        ("ncar_pbsparse_records.txt", []),
        ("qiudi_pbs_testdata", []),
        # Its hosts were made anonymous as "[hostname_2]", which is no name.
        ("xdmod_pbs_accounting-logs.log", [(9, "'[hostname_2]' is not a host name")]),
    ],
)
def test_pbs_accounting_adds_up(sample, whole, new_york, name, rejects):
    path = sample("pbs_accounting", name)

    parsed = whole(pbs.parse(Source.open(path), new_york))

    records = grep("^[^;]*;[ER];", path)
    assert parsed.rejects.select("line", "reason").rows() == rejects
    assert parsed.account == Account(
        lines=grep("", path),
        accepted=records - len(rejects),
        rejected=len(rejects),
        irrelevant=grep("", path) - records,
    )
    ran = r"""
        /^[^;]*;[ER];/ && !/\[hostname/ && match($0, / start=[0-9]+/) {
            start = substr($0, RSTART + 7, RLENGTH - 7)
            match($0, / end=[0-9]+/)
            s += substr($0, RSTART + 5, RLENGTH - 5) - start
        }
        END { print s }
    """
    assert run_seconds(parsed.table) == awk(ran, path)


def test_the_forms_of_exec_host_give_these_nodes(sample, whole, new_york):
    path = sample("pbs_accounting", "xdmod_pbs_accounting-logs.log")

    jobs = whole(pbs.parse(Source.open(path), new_york)).table

    assert jobs.select("batch_id", "nodes", "node_count", "core_count").rows() == [
        ("6", "i02n[30-33]", 4, 32),
        ("6", "i02n[30-33]", 4, 32),
        ("6464684", "n404", 1, 4),
        ("2994", "c[1-5]", 5, 65),
        ("2995", "c[1-2]", 2, 12),
        ("7904", "", 1, None),
        ("10711", "node0703", 1, 28),
        ("10712", "node0703", 1, 28),
    ]


@pytest.mark.parametrize("name", ["safe_ALPSData.txt", "safe_NewAlps.txt"])
def test_launches_add_up(sample, whole, name):
    path = sample("alps", name)

    parsed = whole(alps.parse(Source.open(path)))

    starts, ends = grep(", Starting,", path), grep(", Finishing,", path)
    assert parsed.account == Account(
        lines=grep("", path), accepted=starts + ends, irrelevant=grep("", path) - starts - ends
    )
    launches = parsed.table
    assert launches["started_at"].count() == starts
    assert launches["ended_at"].count() == ends
    nodes = awk(
        "match($0, /num_nodes=[0-9]+/) { s += substr($0, RSTART + 10, RLENGTH - 10) }"
        "END { print s }",
        path,
    )
    assert launches["node_count"].sum() == nodes
    assert sum(len(hostlists.expand(text)) for text in launches["nodes"]) == nodes
    assert launches["launch"].unique().len() == starts


@pytest.mark.parametrize("name", ["safe_RURData.txt", "safe_LASSiData.txt"])
def test_other_lines_of_a_cray_are_irrelevant(sample, whole, name):
    path = sample("alps", name)

    account = whole(alps.parse(Source.open(path))).account

    assert account == Account(lines=grep("", path), irrelevant=grep("", path))


@pytest.mark.parametrize(
    ("name", "batch_id", "state", "hours"),
    [
        ("history.377260.0", "377260", "completed", 910 / 3600),
        ("history.377270.0", "377270", "cancelled", 377 / 3600),
        ("wmcore_running_job_ad_file", "3733615", "completed", 1270 / 3600),
    ],
)
def test_htcondor_ads_are_read(sample, whole, name, batch_id, state, hours):
    path = sample("htcondor_history", name)

    parsed = whole(htcondor.parse(Source.open(path)))

    lines = grep("", path)
    assert parsed.account == Account(lines=lines, accepted=1, irrelevant=lines - 1)
    assert parsed.table.select("batch_id", "array_index", "state").rows() == [
        (batch_id, "0", state)
    ]
    assert run_seconds(parsed.table) == pytest.approx(hours * 3600)


def test_lsf_accounting_adds_up(sample, whole):
    path = sample("lsf_acct", "xdmod_lsf_accounting-logs.log")

    parsed = whole(lsf.parse(Source.open(path)))

    assert parsed.account == Account(lines=2, accepted=grep("^.JOB_FINISH", path))
    assert parsed.table.select("batch_id", "node_count", "core_count").rows() == [
        ("404717", 8, 128),
        ("404717", 4, 8),
    ]
    assert run_seconds(parsed.table) == counted("awk", "{ s += $3 - $11 } END { print s }", path)


def test_grid_engine_accounting_adds_up(sample, whole):
    path = sample("sge_accounting", "xdmod_sge_accounting-logs.log")

    parsed = whole(sge.parse(Source.open(path)))

    assert parsed.account == Account(lines=2, accepted=2)
    ran = counted("awk", "-F:", "{ s += $11 - $10 } END { print s }", path)
    assert run_seconds(parsed.table) == ran
    assert parsed.table["cpu_s"].to_list() == [60.13, 60.13]
    assert parsed.table["time_limit_s"].to_list() == [36_000, 36_000]
