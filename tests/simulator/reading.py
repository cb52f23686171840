"""Readers of the raw files, based on the formats' descriptions and not on the simulator."""

import gzip
import re
import shutil
import subprocess
from datetime import UTC, datetime, timedelta

AWK = shutil.which("awk")

RPC = re.compile(
    r"[0-9a-f]{8}:[0-9a-f]{8}:\d+\.\d(?P<first>F?):(?P<time>\d+\.\d{6}):0:\d+:0:"
    r"\(service\.c:\d+:ptlrpc_server_handle_request\(\)\) (?P<kind>Handling|Handled) RPC "
    r"(?:req@[0-9a-f]+ )?pname:cluuid\+ref:pid:xid:nid:opc(?::job)? "
    r"(?P<thread>(?:mdt|mdt_rdpg|ldlm_cn)\d\d_\d{3}):"
    r"(?P<uuid>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\+\d+:\d+:x(?P<xid>\d+):"
    r"12345-(?P<nid>\d+@gni|[\d.]+@o2ib):(?P<opcode>\d+)(?::(?P<job>\S*))?"
    r"(?: Request process?ed in (?P<service>\d+)us \((?P<total>\d+)us total\)"
    r" trans \d+ rc -?\d+/-?\d+)?"
)
PBS = re.compile(
    r"(?P<stamp>\d\d/\d\d/\d{4} \d\d:\d\d:\d\d);(?P<kind>[QSE]);(?P<id>[^;]+);(?P<text>.*)"
)
ALPS = re.compile(
    r"<150>1 (?P<time>\S+-04:00) c\d+-\dc\ds\dn\d (?:aprun|apsys) \d+ p0-\w+ \[alps_msgs@34\] "
    r"apid=(?P<apid>\d+), (?P<event>Starting|Finishing), user=\d+, batch_id=(?P<id>\d+\.titan), "
    r"(?:cmd_line=\"[^\"]+ \", num_nodes=(?P<count>\d+), node_list=(?P<nodes>[\d,-]+), "
    r"cwd=\"[^\"]+\"|exit_code=\d+, exitcode_array=\d+, exitsignal_array=\d+)"
)
_COUNTER = re.compile(
    r"  (\w+): +\{ samples: {1,11}(\d+), unit: (?: reqs \}|bytes, "
    r"min: *(\d+), max: *(\d+), sum: +(\d+) \})"
)


def awk(program, *files):
    done = subprocess.run(
        [AWK, program, *map(str, files)], check=True, capture_output=True, text=True
    )
    return done.stdout.splitlines()


def unfold(folded):
    """Return the node numbers of ``2258-2259,2263``."""
    runs = [run.partition("-") for run in folded.split(",")]
    return [n for first, _, last in runs for n in range(int(first), int(last or first) + 1)]


def pbs_records(path):
    """Yield (header time, type, batch id, values) of an accounting file."""
    for line in path.read_text().splitlines():
        record = PBS.fullmatch(line)
        assert record, line
        values = dict(pair.split("=", 1) for pair in record["text"].split(" "))
        # New York in summer time.
        stamp = datetime.strptime(record["stamp"], "%m/%d/%Y %H:%M:%S").replace(tzinfo=UTC)
        yield stamp + timedelta(hours=4), record["kind"], record["id"], values


def alps_lines(folder):
    for path in sorted(folder.glob("messages-*")):
        for line in path.read_text().splitlines():
            match = ALPS.fullmatch(line)
            assert match, line
            yield match


def read_time(path):
    return datetime.strptime(path.stem, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)


def job_stats(text):
    """Return {target: {job id: (snapshot time, {counter: value})}}; for bytes the sums."""
    targets = {}
    for line in text.splitlines():
        if "job_stats=" in line:
            target = line.split(".")[1]
            entries = targets[target] = {}
        elif line.startswith("- job_id:"):
            job = line.removeprefix("- job_id:          ")
            assert job not in entries
        elif line.startswith("  snapshot_time:   "):
            counters = {}
            entries[job] = (int(line.split()[1]), counters)
        elif line != "job_stats:":
            name, samples, *_, total = _COUNTER.fullmatch(line).groups()
            counters[name] = int(samples if total is None else total)
    return targets


def md_stats(text):
    head, snapshot, *rows = text.splitlines()
    assert head == "mdt.atlas2-MDT0000.md_stats="
    assert re.fullmatch(r"snapshot_time             \d+\.\d{1,6} secs\.usecs", snapshot)
    rows = [re.fullmatch(r"(\w+) +(\d+) samples \[reqs\]", row).groups() for row in rows]
    return {name: int(count) for name, count in rows}


def gunzip(path):
    with gzip.open(path, "rt") as file:
        return file.read()
