"""Prepare this machine: Debian packages, and Python packages in ``.venv``.

usage: python -m scripts.bootstrap LOCK [NEED...]

LOCK names a lock file of requirements/; each NEED is a program or a shared library, in addition to
the needs of the services. Fast when there is nothing to do; uses only Python's standard library.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from scripts.checkout import CHECKOUT, VAR, Problem, alone, exit_status, is_root, run_logged, say
from scripts.services.choice import choose

LOCKS = CHECKOUT / "requirements"
VENV = CHECKOUT / ".venv"
NGINX = VAR / "nginx"
DEBIAN_WHEELS = Path("/usr/share/python-wheels")
OLDEST_PYTHON = (3, 11)
PACKAGE_OF = {
    "bwrap": "bubblewrap",
    "chromium": "chromium",
    "libatomic.so.1": "libatomic1",  # needed by Playwright's browsers
    "mawk": "mawk",
    "mmdebstrap": "mmdebstrap",
    "nginx": "nginx",
}


def bootstrap(lock: str, needs: list[str]) -> None:
    if sys.version_info < OLDEST_PYTHON:
        raise Problem(f"{sys.executable} is too old: make PYTHON=python3.11 (or newer)")
    with alone():
        if "nginx" in needs:
            unpack_nginx()
        provider = choose()
        install_debian_packages([*provider.programs, *(need for need in needs if need != "nginx")])
        with ThreadPoolExecutor(1) as pool:  # the two longest steps in parallel
            preparing = pool.submit(provider.prepare)
            install_python_packages(lock)
            preparing.result()
        if lock == "dev":
            install_hook()


def install_debian_packages(needs: list[str]) -> None:
    """Install missing packages as root; otherwise name the command for root."""
    missing = [PACKAGE_OF[need] for need in needs if not is_there(need)]
    if importlib.util.find_spec("ensurepip") is None:
        missing.append("python3-venv")
    if not missing:
        return
    if shutil.which("apt-get") is None:
        raise Problem(f"Not a Debian machine: install {', '.join(missing)} manually")
    update = ("apt-get", "update")
    install = ("apt-get", "install", "--yes", "--no-install-recommends", *missing)
    if not is_root():
        line = " && ".join(map(" ".join, (update, install)))
        raise Problem(f"Run this line as root, then try again:\n{line}")
    say(f"Installing Debian packages: {' '.join(missing)}")
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    run_logged(update, "apt-get-update", env=environment)
    run_logged(install, "apt-get-install", env=environment)


def unpack_nginx() -> None:
    """Unpack nginx below var/ for a test; the installed package would start a server on port 80."""
    if shutil.which("nginx") or NGINX.exists():
        return
    new = NGINX.with_name("nginx.new")
    try:
        with tempfile.TemporaryDirectory() as folder:
            run_logged(("apt-get", "download", "nginx"), "nginx-download", cwd=Path(folder))
            [package] = Path(folder).glob("nginx_*.deb")
            run_logged(("dpkg-deb", "--extract", str(package), str(new)), "nginx-unpack")
        new.rename(NGINX)
    except (OSError, Problem):
        say("nginx cannot be downloaded: the test of deploy/nginx.conf is skipped")


def is_there(need: str) -> bool:
    """Return whether a program is on PATH, or a shared library can be loaded."""
    if ".so" not in need:
        return shutil.which(need) is not None
    try:
        ctypes.CDLL(need)
    except OSError:
        return False
    return True


def install_python_packages(lock: str) -> None:
    """Install the packages of the lock file into .venv; "dev" contains "base"."""
    digest = digest_of_locks()
    if digest in (stamped("dev"), stamped(lock)):
        return
    if stamped("base") != digest:
        say("Creating the virtual environment .venv")
        python = str(Path(sys.executable).resolve())  # not the interpreter in .venv
        run_logged((python, "-m", "venv", "--clear", "--without-pip", str(VENV)), "venv")
        pip_install("installer", str(bundled_pip()))
    say(f"Installing the Python packages of requirements/{lock}.txt")
    pip_install(lock, "-m", "pip")
    (VENV / f"{lock}.installed").write_text(digest)


def bundled_pip() -> Path:
    """Return pip inside the wheel of Python's ensurepip, which runs without installation."""
    import ensurepip  # noqa: PLC0415  (of a Debian package that is installed before)

    folders = (Path(ensurepip.__file__).parent / "_bundled", DEBIAN_WHEELS)
    wheels = [wheel for folder in folders for wheel in folder.glob("pip-*.whl")]
    if not wheels:
        raise Problem("Python's ensurepip has no pip: install python3-venv and python3-pip-whl")
    return wheels[0] / "pip"


def pip_install(lock: str, *pip: str) -> None:
    # Most modules are never imported; Python compiles the others at their first import.
    options = ("--require-hashes", "--only-binary=:all:", "--no-deps", "--no-compile", "--quiet")
    install = (str(VENV / "bin/python"), *pip, "install", *options)
    run_logged((*install, "--requirement", str(LOCKS / f"{lock}.txt")), f"pip-{lock}")


def install_hook() -> None:
    """Let git check the subjects of commits, unless the developer has a hook."""
    asked = ("git", "rev-parse", "--path-format=absolute", "--git-path", "hooks/commit-msg")
    answer = subprocess.run(asked, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    hook = Path(answer.stdout.strip())
    if answer.returncode == 0 and not hook.exists():  # otherwise the checkout is an archive
        hook.parent.mkdir(exist_ok=True)
        shutil.copy(CHECKOUT / "scripts/commit-msg", hook)


def stamped(lock: str) -> str | None:
    stamp = VENV / f"{lock}.installed"
    return stamp.read_text() if stamp.exists() else None


def digest_of_locks() -> str:
    """Return a digest of .venv's dependencies: Python version, location and lock files."""
    digest = hashlib.sha256(f"{sys.version} {CHECKOUT}".encode())
    for path in sorted(LOCKS.glob("*.txt")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def main() -> None:
    match sys.argv[1:]:
        case [("base" | "dev") as lock, *needs] if set(needs) <= PACKAGE_OF.keys():
            bootstrap(lock, needs)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    sys.exit(exit_status(main))
