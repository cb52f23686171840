"""A private Debian below ``var/root``: the servers' programs, unpacked, never installed.

mmdebstrap checks and unpacks the packages without running anything of theirs; bubblewrap then shows
their ``/usr`` to the servers as a machine with one unprivileged user. Works as root and as anybody.
"""

from __future__ import annotations

import shutil
from itertools import chain
from pathlib import Path

from scripts.checkout import VAR, is_root, run_logged, say
from scripts.services import bubblewrap, daemons
from scripts.services.way import Way

ROOT = VAR / "root"
DEBIAN = "trixie"  # the first with TimescaleDB
PACKAGES = ("postgresql-17-timescaledb", "valkey-server", "dash")
PROGRAMS = ("mmdebstrap", "bwrap")
UID = 1000


def way() -> Way:
    """The way that needs nothing but a Debian mirror and two small programs."""
    return Way("a private Debian root in var/root", daemons.addresses, start, PROGRAMS, programs)


def is_possible() -> bool:
    """Whether the programs are there, or can be: root may install them."""
    return all(map(shutil.which, PROGRAMS)) or (is_root() and shutil.which("apt-get") is not None)


def start() -> None:
    build()
    daemons.start(programs(daemons.HOME))


def build() -> None:
    """Unpack the private root unless it is there; an interrupted attempt leaves none."""
    if ROOT.exists():
        return
    say(f"Unpacking PostgreSQL, TimescaleDB and Valkey of Debian {DEBIAN} into var/root")
    new = VAR / "root.new"
    shutil.rmtree(new, ignore_errors=True)
    # Of the modes that need no root rights, in "chrootless" the files belong to whoever runs it.
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
