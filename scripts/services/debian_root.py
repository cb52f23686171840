"""A private Debian below ``var/root``: the servers' programs, unpacked but not installed.

mmdebstrap checks and unpacks the packages without running them; bubblewrap then provides their
``/usr`` to the servers as a machine with one unprivileged user. Works for root and other users.
"""

from __future__ import annotations

import shutil
from itertools import chain
from pathlib import Path

from scripts.checkout import VAR, is_root, run_logged, say
from scripts.services import bubblewrap, daemons
from scripts.services.provider import Provider

ROOT = VAR / "root"
DEBIAN = "trixie"  # the first release with TimescaleDB
PACKAGES = ("postgresql-17-timescaledb", "valkey-server", "dash")
PROGRAMS = ("mmdebstrap", "bwrap")
UID = 1000


def provider() -> Provider:
    """Return the provider that needs only a Debian mirror and two small programs."""
    return Provider(
        "a private Debian root in var/root", daemons.addresses, start, build, PROGRAMS, programs
    )


def is_possible() -> bool:
    """Return whether the programs are available, or can be installed by root."""
    return all(map(shutil.which, PROGRAMS)) or (is_root() and shutil.which("apt-get") is not None)


def start() -> None:
    build()
    daemons.start(programs(daemons.HOME))


def build() -> None:
    """Unpack the private root unless it exists; an interrupted attempt leaves no files."""
    if ROOT.exists():
        return
    say(f"Unpacking PostgreSQL, TimescaleDB and Valkey of Debian {DEBIAN} into var/root")
    new = VAR / "root.new"
    shutil.rmtree(new, ignore_errors=True)
    # Of the modes without root rights, only "chrootless" gives the files to the current user.
    mode = "root" if is_root() else "chrootless"
    options = (f"--mode={mode}", "--variant=extract", f"--include={','.join(PACKAGES)}")
    run_logged(("mmdebstrap", *options, DEBIAN, str(new)), "mmdebstrap")
    user = f"ioportal:x:{UID}:{UID}::/services:/usr/sbin/nologin\n"
    (new / "etc/passwd").write_text(user)
    (new / "etc/group").write_text(f"ioportal:x:{UID}:\n")
    new.rename(ROOT)


def programs(home: Path) -> daemons.Programs:
    links = [("--symlink", f"usr/{name}", f"/{name}") for name in ("bin", "sbin", "lib", "lib64")]
    mounts = ("--ro-bind", f"{ROOT}/usr", "/usr", "--ro-bind", f"{ROOT}/etc", "/etc")
    return daemons.Programs(
        postgres_folder=Path("/usr/lib/postgresql/17/bin"),
        valkey=Path("/usr/bin/valkey-server"),
        wrapper=bubblewrap.wrapper(
            *mounts, *chain(*links), uid=UID, home=home, shown_as="/services"
        ),
        home=home,
    )
