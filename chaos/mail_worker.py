"""A worker that sends mails until it is killed, again and again: ``python -m chaos.mail_worker``.

Each life is a fork of this process, which imports the portal once. It prints the process id of each
life, and ends at the end of its input.
"""

from __future__ import annotations

import os
import sys
import time
from threading import Thread

import django
from django.core.management import call_command, load_command_class

_PAUSE_S = 0.01


def main() -> None:
    """Fork a life after the other."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ioportal.settings")
    django.setup()
    load_command_class("ioportal.alerts", "send_mails")
    Thread(target=_end_with_input, daemon=True).start()
    while True:
        life = os.fork()
        if not life:
            _live()
        print(life, flush=True)  # noqa: T201
        os.waitpid(life, 0)


def _live() -> None:
    parent = os.getppid()
    while os.getppid() == parent:
        call_command("send_mails")
        time.sleep(_PAUSE_S)
    os._exit(0)


def _end_with_input() -> None:
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
