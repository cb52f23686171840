"""The complete demo: reproducible, independent and registered."""

import hashlib
import json
import os
import subprocess
import sys
import tomllib

import pytest


def digests(folder):
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


def python(*arguments, **environment):
    subprocess.run([sys.executable, *arguments], check=True, env=os.environ | environment)


@pytest.mark.long
def test_a_seed_gives_the_same_bytes(tmp_path):
    a_day = ("--start", "2017-10-17", "--days", "1", "--rate", "0.2", "--poll", "3600")

    for out, seed, hash_seed in (("one", "1", "7"), ("again", "1", "8"), ("other", "2", "7")):
        python(
            *("-m", "simulator", "demo", *a_day, "--seed", seed, "--out", str(tmp_path / out)),
            PYTHONHASHSEED=hash_seed,
        )

    first, again, other = (digests(tmp_path / out) for out in ("one", "again", "other"))
    assert first == again
    assert len(set(first.values()) - set(other.values())) > 50


def test_the_story_ends_on_a_given_day_with_its_times_of_day(tmp_path):
    arguments = ("--start", "2026-07-29", "--days", "1", "--rate", "0.1", "--poll", "21600")
    python(
        *("-m", "simulator", "demo", "--ends", "2026-11-22", *arguments, "--no-trace"),
        *("--out", str(tmp_path)),
    )

    truth = json.loads((tmp_path / "truth.json").read_text())
    assert truth["week"]["start"] == "2025-11-17T05:00:00+00:00"  # 25 October 2016, midnight
    [crisis] = truth["incidents"]
    assert (crisis["start"], crisis["end"]) == (
        "2026-07-29T13:50:00+00:00",
        "2026-07-29T20:00:00+00:00",
    )
    assert [path.name for path in (tmp_path / "late").iterdir()] == ["pbs-20260729"]
    [month] = (tmp_path / "pbs").iterdir()
    assert month.name == "202607"
    assert "07/29/2026 09:52:55;S;" in month.read_text()  # as on 6 July 2017
    reads = sorted(path.name for path in (tmp_path / "job_stats/atlas2-MDT0000").iterdir())
    assert {name[:8] for name in reads} == {"20260729", "20260730"}
    minutes = [name for name in reads if "20260729T14" <= name < "20260729T20"]
    assert len(minutes) == 360


def test_the_simulator_imports_neither_collectors_nor_portal():
    python(
        "-c",
        "import sys, simulator.commands\n"
        "assert not {'collectors', 'ioportal'} & {name.split('.')[0] for name in sys.modules}",
    )


def test_the_registration_file_has_the_names_in_the_logs(centre):
    site = tomllib.loads((centre / "site.toml").read_text())

    cluster, shared = site["cluster"]
    assert cluster["nodes"] == "nid[00000-19199]"
    assert shared["nodes"] == "rhea[1-840]"
    assert cluster["nid_rule"]["node"].format(number=4217) == "nid04217"
    assert {nid["node"] for nid in cluster["nid"]} >= {"titan-ext1", "titan-policy1"}
    assert {target["name"] for target in site["target"]} == {
        "atlas2-MDT0000",
        *(f"atlas2-OST{n:04d}" for n in range(4)),
    }
    lustre = [server for server in site["server"] if server["kind"] != "nfs"]
    assert all(server["version"][0]["version"] == "2.8.0" for server in lustre)
    mds = next(server for server in site["server"] if server["kind"] == "mds")
    assert [version["version"] for version in mds["version"]] == ["2.8.0", "2.15.3"]


def test_the_demo_is_of_moderate_size(centre):
    files = [path for path in centre.rglob("*") if path.is_file()]

    assert len(files) < 2_700
    assert sum(path.stat().st_size for path in files) < 300_000_000
