"""Lock files contain exact versions, and no addresses."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = Path(__file__).parents[2]
LOCKS = sorted((PROJECT / "requirements").glob("*.txt"))


def locked(path):
    """The entries of a lock file: name, exact version, marker and hashes, each on one line."""
    return path.read_text().replace("\\\n", " ").splitlines()


def declared(extra=None):
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    requirements = project["optional-dependencies"][extra] if extra else project["dependencies"]
    return {canonicalize_name(Requirement(requirement).name) for requirement in requirements}


def names(path):
    return {canonicalize_name(re.split("==", entry)[0]) for entry in locked(path)}


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_every_locked_package_has_one_version_and_hashes(path):
    entries = locked(path)

    assert entries
    for entry in entries:
        assert re.fullmatch(r"[\w.-]+==\S+( ; .+?)?( +--hash=sha256:[0-9a-f]{64})+", entry), entry


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_a_lock_file_names_no_address_and_no_path(path):
    text = path.read_text()

    assert "/" not in text
    assert "--index" not in text
    assert "--find-links" not in text


def test_the_lock_files_contain_the_declared_packages():
    base, dev = (names(PROJECT / f"requirements/{name}.txt") for name in ("base", "dev"))

    assert declared() <= base
    assert declared("dev") <= dev
    assert base <= dev


def test_both_lock_files_agree_on_the_versions():
    base, dev = (set(locked(PROJECT / f"requirements/{name}.txt")) for name in ("base", "dev"))

    assert base <= dev


def test_an_agent_has_the_versions_of_the_portal():
    agent, base = (
        {entry.split()[0] for entry in locked(PROJECT / f"requirements/{name}.txt")}
        for name in ("agent", "base")
    )

    assert agent <= base
