"""strace logs: the calls of a program, with their paths, results and times."""

import re
import shutil
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.experiments import strace
from collectors.parsed import Account
from tests.collectors.conftest import FIXTURES
from tests.properties import examples

LOGS = ("folders.txt", "stderr.txt", "midnight.txt", "summary.txt", "damaged.txt")


@pytest.fixture(scope="session")
def parsed(source, whole):
    def parse(text, chunk_bytes=1 << 20, read_plain=strace.read_plain):
        return whole(strace.parse(source(text, chunk_bytes=chunk_bytes), read_plain))

    return parse


@pytest.fixture(scope="session")
def log(parsed, fixture_text):
    def parse(name):
        return parsed(fixture_text("strace", name))

    return parse


def none_of(lines):
    """Read no line in columns: every line takes the exact path."""
    return strace.read_plain(lines).clear()


def by_path(table):
    """Return (call, path, error): count."""
    return {
        (row["call"], row["path"], row["error"]): row["count"]
        for row in table.iter_rows(named=True)
    }


def test_paths_are_resolved_with_the_folders_that_the_log_shows(log):
    table = log("folders.txt").table

    assert table.select("call", "path", "error", "count", "first_line").rows() == [
        ("execve", "/sw/python/3.11/bin/python3", "", 1, 1),
        ("openat", "/sw/ext/lib/glibc-hwcaps/x86-64-v3/libm.so.6", "ENOENT", 1, 2),
        ("newfstatat", "/sw/ext/lib/glibc-hwcaps/x86-64-v3", "ENOENT", 1, 3),
        ("openat", "/lustre/work/libm.so.6", "ENOENT", 1, 4),
        ("openat", "/sw/lib/libm.so.6", "", 1, 5),
        ("read", None, "", 1, 6),
        ("newfstatat", None, "", 1, 7),
        ("close", None, "", 1, 8),
        ("readlink", "/proc/self/exe", "", 1, 9),
        ("clone3", None, "", 1, 10),
        ("newfstatat", "/lustre/work/out.tmp", "", 1, 11),
        ("stat", "/lustre/work/steering.py", "ENOENT", 1, 12),
        ("openat", '/lustre/work/café "x"\n.dat', "ENOENT", 1, 15),
        ("openat", "/lustre/work/input/sub", "ENOENT", 1, 16),
        ("futex", None, "ERESTARTSYS", 1, 17),
        ("statx", "/lustre/work/out.tmp", "", 1, 21),
    ]
    assert table["second"].unique().sort().to_list() == [1795163270, 1795163280]
    assert table.filter(path="/lustre/work/steering.py")["duration_s"].item() == 0.00035
    assert log("folders.txt").account == Account(lines=23, accepted=16, rejected=0, irrelevant=7)


def test_working_directories_are_followed_and_inherited(log):
    parsed = log("stderr.txt")

    assert by_path(parsed.table) == {
        ("execve", "/usr/bin/env", ""): 1,
        ("access", "conf/early.cfg", "ENOENT"): 1,  # the folder is not known yet
        ("getcwd", "/lustre/work", ""): 1,
        ("access", "/lustre/work/conf/site.cfg", "ENOENT"): 1,
        ("chdir", "/lustre/work/run", ""): 1,
        ("open", "/lustre/work/run/job.py", ""): 2,
        ("stat", "/lustre/work/run/child.py", "ENOENT"): 1,
        ("execve", "/bin/ls", ""): 1,
        ("vfork", None, ""): 1,
        ("chdir", "/run", ""): 1,
        ("stat", "/run/child.py", "ENOENT"): 1,
        ("wait4", None, ""): 1,
        ("openat", "notes", "ENOTDIR"): 1,  # descriptor 3 is not known
        ("fchdir", None, ""): 1,
        ("open", "lost.py", "ENOENT"): 1,
    }
    assert parsed.account == Account(lines=22, accepted=16, rejected=0, irrelevant=6)
    assert parsed.table.filter(path="notes")["second"].item() == 20  # times are relative


def test_times_of_the_day_continue_after_midnight(log):
    table = log("midnight.txt").table

    assert dict(table.select("path", "second").iter_rows()) == {
        "/a": 86_390,
        "/b": 86_400,
        "/bin/true": 86_400,
        "/d": 86_390,
    }


def test_a_summary_counts_calls_without_paths(log):
    parsed = log("summary.txt")

    assert by_path(parsed.table) == {
        ("openat", None, ""): 590,
        ("openat", None, "?"): 110,
        ("wait4", None, ""): 4,
        ("access", None, "?"): 2,
    }
    assert parsed.table["timed"].sum() == 0
    assert parsed.account == Account(lines=7, accepted=3, rejected=0, irrelevant=4)


def test_the_summary_after_a_trace_is_not_counted_again(parsed, fixture_text):
    text = fixture_text("strace", "midnight.txt") + fixture_text("strace", "summary.txt")

    assert parsed(text).table["count"].sum() == 4


def test_cut_lines_are_rejected_with_the_reason(log):
    parsed = log("damaged.txt")

    assert parsed.rejects.select("line", "reason").rows() == [
        (2, "the line is truncated: no result"),
        (3, "no system call: expected NAME(ARGUMENTS) = RESULT"),
        (4, "no system call: expected NAME(ARGUMENTS) = RESULT"),
        (6, "the line is truncated: no result"),
        (7, "the line is truncated: no result"),
        (11, "the line is truncated: no result"),
    ]
    assert by_path(parsed.table) == {
        ("open", "/a", ""): 1,
        ("open", None, "EFAULT"): 1,
        ("open", "/d", "?"): 1,
        ("stat", None, "ENOENT"): 1,
    }


PIECES = st.sampled_from(
    [
        *sorted(
            {
                line
                for name in LOGS
                for line in (FIXTURES / "strace" / name).read_text().splitlines()
            }
        ),
        '7034  1795163276.9 chdir("/new") = 0',
        '7035  1795163276.9 open("rel", O_RDONLY) = -1 ENOENT (No such file or directory)',
        '7036  1795163276.9 open("rel", O_RDONLY) = -1 ENOENT (No such file or directory)',
        "7034  1795163276.9 fork( <unfinished ...>",
        "7034  1795163276.9 <... fork resumed>) = 7036",
        *(
            f"{pid}  1795163277.0 {text}"
            for pid in (7034, 7035)
            for text in (
                'open("/lib/libz.so",  <unfinished ...>',
                'open("libz.so",  <unfinished ...>',
                "<... open resumed>O_RDONLY) = -1 ENOENT (No such file or directory) <0.000090>",
                "<... open resumed>O_RDONLY) = 5 <0.000040>",
                "+++ superseded by execve in pid 7035 +++",
            )
        ),
    ]
)
DAMAGE = st.lists(
    st.tuples(
        st.floats(0, 1),
        st.integers(0, 30),
        st.binary(max_size=3)
        | st.sampled_from([b"(", b") = ", b'"', b"\n", b"\0", b"<", b"\\", b"E"]),
    ),
    max_size=4,
)


def damaged(text, damage):
    for where, length, other in damage:
        at = 1 + int(where * len(text))
        text = text[:at] + other + text[at + length :]
    return text


@pytest.mark.long
@given(lines=st.lists(PIECES, max_size=30), damage=DAMAGE, chunk_bytes=st.integers(50, 2_000))
@settings(max_examples=examples(150))
def test_columns_chunks_and_the_exact_path_agree_on_any_log(parsed, lines, damage, chunk_bytes):
    text = damaged("\n".join(lines).encode(), damage)

    fast, exact, chunked = (
        parsed(text),
        parsed(text, read_plain=none_of),
        parsed(text, chunk_bytes=chunk_bytes),
    )

    if text:
        assert fast.table.equals(exact.table)
        assert fast.rejects.equals(exact.rejects)
        assert totals(chunked) == totals(fast)
    assert fast.account == exact.account == chunked.account
    account = fast.account
    assert account.lines == text.count(b"\n") + (not text.endswith(b"\n") and text != b"")
    assert account.lines == account.accepted + account.rejected + account.irrelevant


def totals(parsed):
    """Return count and first line by key."""
    found = {}
    for row in parsed.table.iter_rows(named=True):
        key = row["second"], row["call"], row["path"], row["error"]
        count, line = found.get(key, (0, row["first_line"]))
        found[key] = count + row["count"], min(line, row["first_line"])
    return found


@pytest.mark.parametrize(
    "name", ["strace6.1_f_tt.txt", "strace6.1_f_ttt_T_y.txt", "strace6.1_stderr_f_r_T.txt"]
)
def test_real_logs_are_counted_as_grep_counts_them(sample, parsed, name):
    text = sample("strace", name).read_bytes()
    returned = re.findall(rb"^(?!.*\+\+\+).*\) += (?!\?\n)", text, re.MULTILINE)
    missing = re.findall(
        rb"^(?!.*(?:unfinished|resumed)).*open(?:at)?\(.*= -1 ENOENT", text, re.MULTILINE
    )
    resumed = re.findall(rb"<\.\.\. openat resumed>\) += -1 ENOENT", text)

    log = parsed(text)

    assert log.account.rejected == 0
    assert log.table["count"].sum() == log.account.accepted == len(returned)
    opens = log.table.filter(call="openat", error="ENOENT")
    assert opens["count"].sum() == len(missing) + len(resumed)
    assert opens["path"].null_count() == 0


PROGRAM = """
import os, subprocess, sys
os.chdir(sys.argv[1])
for number in range(20):
    try:
        open(f"missing/{number}.dat")
    except OSError:
        os.path.exists("present.dat")
subprocess.run(["/bin/ls", "nothing"], stderr=subprocess.DEVNULL)
"""


@pytest.mark.parametrize("options", [["-ttt", "-T", "-y"], ["-r"], ["-xx", "-tt"], ["-t", "-yy"]])
def test_a_real_program_is_traced(parsed, tmp_path, options):
    if not shutil.which("strace"):
        pytest.skip("strace is not installed")
    (tmp_path / "present.dat").touch()
    log = tmp_path / "trace.log"
    command = [
        "strace",
        "-f",
        *options,
        "-o",
        log,
        sys.executable,
        "-I",
        "-S",
        "-c",
        PROGRAM,
        tmp_path,
    ]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("strace cannot trace here")
    text = log.read_bytes()

    table = parsed(text).table

    assert parsed(text).account.rejected == 0
    assert parsed(text, read_plain=none_of).table.equals(table)
    missing = table.filter(call="openat", error="ENOENT")["path"].to_list()
    assert Counter(path.startswith(f"{tmp_path}/missing/") for path in missing)[True] == 20
    present = table.filter(path=f"{tmp_path}/present.dat")
    assert present.filter(error="")["count"].sum() >= 20
    assert table.filter(path=f"{tmp_path}/nothing", error="ENOENT")["count"].sum() >= 1
    returned = re.findall(rb"execve(?:\(.*\)| resumed>\)) += 0", text)
    assert table.filter(call="execve")["count"].sum() == len(returned)


def test_frames_of_stacks_are_irrelevant(parsed):
    text = (
        b'1 1700000000.000000 open("/a", O_RDONLY) = 3\n'
        b" > /lib/libc.so.6(__open64+0x5b) [0x11]\n > /bin/ls(main+0x5) [0x22]\n"
        b'1 1700000000.000100 open("/b", O_RDONLY) = 4\n > unexpected_backtracing_error [0x1]\n'
    )

    assert parsed(text).table["path"].to_list() == ["/a", "/b"]
    assert parsed(text).account == Account(lines=5, accepted=2, irrelevant=3)
