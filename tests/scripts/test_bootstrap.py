"""Set-up of a machine: missing packages are named in one line, others are unchanged."""

import re
import shutil

import pytest

from scripts import bootstrap
from scripts.checkout import Problem


@pytest.fixture
def bare_debian(tmp_path, monkeypatch):
    """A machine with only apt-get on PATH, for a user other than root."""
    (tmp_path / "apt-get").symlink_to(shutil.which("false"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(bootstrap, "is_root", lambda: False)


@pytest.mark.usefixtures("bare_debian")
def test_without_root_the_command_for_root_is_named():
    with pytest.raises(Problem) as problem:
        bootstrap.install_debian_packages(["mmdebstrap", "bwrap"])

    assert str(problem.value).splitlines()[1:] == [
        "apt-get update && apt-get install --yes --no-install-recommends mmdebstrap bubblewrap"
    ]


@pytest.mark.usefixtures("bare_debian")
def test_a_complete_machine_is_not_changed():
    bootstrap.install_debian_packages(["libc.so.6"])


def test_without_apt_the_missing_packages_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(Problem, match="Not a Debian machine: install chromium, mawk"):
        bootstrap.install_debian_packages(["chromium", "mawk"])


def test_every_need_of_the_make_targets_has_a_package():
    makefile = (bootstrap.CHECKOUT / "Makefile").read_text()
    needs = re.findall(r"scripts\.bootstrap (?:base|dev) (.+)", makefile)

    assert needs
    assert set(" ".join(needs).split()) <= bootstrap.PACKAGE_OF.keys()
