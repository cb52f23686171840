"""A few schedules of `make mail-chaos`."""

import json
import subprocess
import sys

import pytest

from scripts.checkout import CHECKOUT

pytestmark = pytest.mark.long


def test_nothing_is_lost_or_sent_twice(tmp_path):
    out = tmp_path / "results.json"
    options = ("--seeds", "5", "--out", out)
    subprocess.run((sys.executable, "-m", "chaos.mails", *options), cwd=CHECKOUT, check=True)

    results = json.loads(out.read_text())
    assert results["schedules"] == 5
    assert results["mail"] + results["webhook"] + results["chat"] == 25
    assert (results["lost"], results["duplicated"], results["failures"]) == (0, 0, [])
