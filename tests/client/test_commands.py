"""The command line ``ioportal`` against a served portal."""

import json
import re
import shlex
import subprocess
import sys
from threading import Timer

import pytest
from django.db import connection

from ioportal.jobs.models import DirtyStatistics
from tests.client.conftest import HOSTILE
from tests.conftest import REPOSITORY

pytestmark = pytest.mark.usefixtures("db")

EXAMPLES = re.findall(
    r"^    \$ ioportal (.*)\n((?:    .*\n|\n(?=    ))*)",
    (REPOSITORY / "docs/client.md").read_text(),
    re.MULTILINE,
)
ESCAPED = HOSTILE.encode("unicode_escape").decode()
BEFORE, AFTER = "user=alice&end=2017-07-13T12:00Z", "user=alice&start=2017-07-13T12:00Z"


@pytest.mark.parametrize(("command", "indented"), EXAMPLES)
def test_every_example_in_the_documentation_prints_what_it_shows(ioportal, command, indented):
    status, output, errors = ioportal(*shlex.split(command))

    assert (status, errors) == (0, "")
    assert output == re.sub("^    ", "", indented, flags=re.MULTILINE)


def test_the_example_in_python_prints_what_it_should(portal, token_file, monkeypatch, capsys):
    text = (REPOSITORY / "docs/client.md").read_text()
    code, output = re.search(r"```python\n(.*?)```\n\nprints `(.*?)`", text, re.DOTALL).groups()
    monkeypatch.setenv("IOPORTAL_URL", portal)
    monkeypatch.setenv("IOPORTAL_TOKEN_FILE", str(token_file("alice")))

    exec(code, {})  # noqa: S102  (our documentation)

    assert capsys.readouterr().out == f"{output}\n"


def test_the_documentation_shows_every_command():
    assert {command.split()[0] for command, _ in EXAMPLES} == {
        *("job", "top", "cases", "compare", "report")
    }


def test_names_cannot_control_a_terminal(ioportal):
    commands = (
        ["job", "66"],
        ["cases", "--state", "notices"],
        ["top", "--by", "project"],
        ["compare", "66", "3567126"],
    )
    commands += (["job", HOSTILE], ["report", HOSTILE], ["compare", f"user={HOSTILE}", "user=x"])
    for command in commands:
        for options in ([], ["--json"]):
            _, output, errors = ioportal(*command, *options)

            assert output + errors
            assert all(c.isprintable() or c == "\n" for c in output + errors), command

    assert f"Job 66 on anvil: {ESCAPED}\n" in ioportal("job", "66")[1]
    assert json.loads(ioportal("job", "66", "--json")[1])["jobname"] == HOSTILE


def test_json_has_the_unrounded_figures(ioportal):
    job = json.loads(ioportal("job", "3567126", "--json")[1])
    load = json.loads(ioportal("top", "--last", "6h", "--json")[1])
    compared = json.loads(ioportal("compare", BEFORE, AFTER, "--json")[1])
    pair = json.loads(ioportal("compare", "3567126", "alice0.1", "--json")[1])
    [case] = json.loads(ioportal("cases", "--limit", "1", "--json")[1])
    report = json.loads(ioportal("report", "3567126", "--json")[1])

    assert (job["mdops_total"], job["mdops_rate_max"]) == (120_300, pytest.approx(803 / 6))
    assert load["operations"]["top"][0]["mean_per_second"] == pytest.approx(120_300 / 3_000)
    assert [arm["jobs"] for arm in compared["arms"]] == [50, 48]
    assert [each["batchid"] for each in pair] == ["3567126", "alice0.1"]
    assert (case["owner"], case["threshold"]) == ("alice", 2e6)
    assert report["metadata_operations_per_node_hour"] == 120_300 / 2


def test_users_see_what_they_may_see(ioportal):
    assert ioportal("job", "3567126", user="alice")[0] == 0
    assert ioportal("cases", user="charlie")[1] == "No cases.\n"
    for command in (["job", "3567126"], ["job", "--pandaid", "4012345678"], ["report", "3567126"]):
        status, output, errors = ioportal(*command, user="charlie")

        assert (status, output) == (1, "")
        assert "that you may see" in errors


def test_exit_statuses_distinguish_usage_and_refusal(ioportal, token_file, tmp_path):
    invalid, open_file = tmp_path / "invalid", tmp_path / "open"
    invalid.touch(0o600)
    invalid.write_text("ioportal_x")
    open_file.write_text(token_file("sam").read_text())
    open_file.chmod(0o640)

    assert ioportal("top", "--token-file", invalid)[0] == 3
    assert ioportal("job", "1", "--token-file", invalid)[0] == 3
    assert "others may read" in ioportal("top", "--token-file", open_file)[2]
    assert "https://" in ioportal("top", "--url", "http://io.example.org")[2]
    for usage in (
        ["top", "--token-file", open_file],
        ["top", "--token-file", tmp_path / "missing"],
        ["top", "--url", "http://io.example.org"],
        ["compare", "user=alice", "3567126"],
        ["top", "--last", "2h"],
        ["cases", "--limit", "0"],
        ["unknown"],
    ):
        assert ioportal(*usage)[0] == 2, usage
    assert ioportal("cases", "--severity", "abuse", "--rule", "x")[0] == 1
    assert ioportal("top", "--url", "https://127.0.0.1:9")[0] == 1


def test_a_token_in_the_environment_needs_no_file(ioportal, token_file, monkeypatch):
    monkeypatch.setenv("IOPORTAL_TOKEN", token_file("charlie").read_text())

    assert ioportal("cases")[1] == "No cases.\n"


def test_a_report_waits_for_the_statistics(ioportal, heavy_job):
    def finish():
        DirtyStatistics.objects.all().delete()
        connection.close()

    DirtyStatistics.objects.create(job_id=heavy_job.pk)
    assert "are being computed" in ioportal("report", "3567126")[2]
    Timer(0.2, finish).start()

    status, output, _ = ioportal("report", "3567126", "--wait", "1")

    assert (status, output.splitlines()[0]) == (0, "Job 3567126 on anvil: relax")


def test_the_distribution_is_installable_and_runs_without_unicode(tmp_path, portal, token_file):
    uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-deps", "--offline"]
    subprocess.run([*uv, "--target", tmp_path, REPOSITORY / "client"], check=True)
    environment = {
        "PYTHONPATH": str(tmp_path), "PATH": "", "LC_ALL": "C", "PYTHONUTF8": "0",
        "IOPORTAL_URL": portal, "IOPORTAL_TOKEN_FILE": str(token_file("sam")),
    }  # fmt: skip

    run = subprocess.run(
        [tmp_path / "bin/ioportal", "compare", BEFORE, AFTER],
        cwd=tmp_path, env=environment, capture_output=True, check=True,
    )  # fmt: skip

    assert b"fell 4.02\\xd7" in run.stdout
    assert (tmp_path / "ioportal_client/py.typed").exists()


def test_a_reader_that_ends_early_is_no_error(portal, token_file, monkeypatch):
    monkeypatch.setenv("IOPORTAL_URL", portal)
    command = [sys.executable, "-m", "ioportal_client", "cases", "--token-file", token_file("sam")]
    run = subprocess.Popen(
        command, cwd=REPOSITORY / "client", stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    run.stdout.close()

    assert (run.wait(), run.stderr.read()) == (0, b"")
