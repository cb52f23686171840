"""The commands in the README."""

import os
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]


def test_make_help_describes_every_command():
    output = subprocess.run(
        ["make", "--no-print-directory", "help"],
        cwd=PROJECT,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    )

    listed = dict(
        line.removeprefix("make ").split(maxsplit=1) for line in output.stdout.splitlines()
    )
    assert {"demo", "demo-data", "serve", "services", "stop", "env", "secrets"} <= listed.keys()
    assert {
        "test",
        "test-all",
        "check",
        "format",
        "audit",
        "bench",
        "chaos",
        "lock",
    } <= listed.keys()
    assert {"clean", "help"} <= listed.keys()
    assert all(listed.values())


@pytest.mark.parametrize(
    ("subject", "is_refused"),
    [
        ("jobs: Sort by any metric.", False),
        ("jobs, api: Say the unit once.", False),
        ("Sort by any metric.", True),
        ("jobs: sort by any metric.", True),
        ("jobs: Sort by any metric", True),
        (f"jobs: {'S' * 66}.", True),
    ],
)
def test_the_hook_refuses_unclear_subjects_of_commits(tmp_path, subject, is_refused):
    message = tmp_path / "message"
    message.write_text(f"{subject}\n\nA body.\n")

    done = subprocess.run(
        [PROJECT / "scripts/commit-msg", message], capture_output=True, check=False
    )

    assert (done.returncode != 0) is is_refused


def test_continuous_integration_runs_all_tests():
    script = PROJECT / ".ci/run"

    assert os.access(script, os.X_OK)
    assert script.read_text().endswith("exec make test-all\n")
