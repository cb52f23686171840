"""Setting up a machine: what is missing is named in one line, what is there is left alone."""

import re
import shutil

import pytest

from scripts import bootstrap
from scripts.checkout import Problem


@pytest.fixture
def bare_debian(tmp_path, monkeypatch):
    """A machine with apt-get on PATH and nothing else, used by somebody who is not root."""
    (tmp_path / "apt-get").symlink_to(shutil.which("false"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(bootstrap, "is_root", lambda: False)


@pytest.mark.usefixtures("bare_debian")
def test_without_root_the_one_line_that_root_must_run_is_named():
    with pytest.raises(Problem) as told:
        bootstrap.install_debian_packages(["mmdebstrap", "bwrap"])

    assert str(told.value).splitlines()[1:] == [
        "apt-get update && apt-get install --yes --no-install-recommends mmdebstrap bubblewrap"
    ]


@pytest.mark.usefixtures("bare_debian")
def test_a_machine_that_has_everything_is_left_alone():
    bootstrap.install_debian_packages(["libc.so.6"])


def test_a_machine_without_apt_is_told_what_it_lacks(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(Problem, match="Not a Debian machine: install chromium, mawk"):
        bootstrap.install_debian_packages(["chromium", "mawk"])


def test_every_need_of_the_make_targets_has_a_package():
    makefile = (bootstrap.CHECKOUT / "Makefile").read_text()
    needs = re.findall(r"scripts\.bootstrap (?:base|dev) (.+)", makefile)

    assert needs
    assert set(" ".join(needs).split()) <= bootstrap.PACKAGE_OF.keys()
