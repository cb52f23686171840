"""Verify that no notification is lost or sent twice while workers are killed and servers fail.

usage: python -m chaos.mails [--seeds N | --seed K]

In each schedule, a worker sends some mails, chats and webhooks. It is killed at random times, and
conversations fail at random steps. The servers count the received messages. A mail or chat is
*uncertain* exactly if the server did not answer its end; if the worker was killed while ending it,
it may be. So may a chat whose server closed without reading: HTTP has no answer before the end. A
webhook is repeated until it is answered, and its receiver recognises it.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter, deque
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import psycopg

from chaos import http_server, mail_server
from chaos.failing_server import KINDS, FailingServer
from scripts.checkout import CHECKOUT, VAR, Problem, exit_status, say

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

FILE = VAR / "mail-chaos.json"
_NOTIFICATIONS = 5  # of a schedule
_FAULTS = 7  # of a schedule, at most: the portal gives up after more
_CHANNELS = ("webhook", "chat")
_KILLS = 4  # of a schedule, at most
_PATIENCE_S = 60.0
_LOOK_S = 0.02
_FINAL = {"sent", "failed", "uncertain"}
_TOTALS = (
    *("mail", "webhook", "chat", "kills", "sent", "failed", "lost", "duplicated", "uncertain"),
    "repeated webhooks",
)


class Worker:
    """A worker that begins a new life whenever it is killed."""

    def __init__(self, environment: dict[str, str], log: IO[bytes]) -> None:
        self._process = subprocess.Popen(
            (sys.executable, "-m", "chaos.mail_worker"),
            cwd=CHECKOUT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        self._life = self._next()

    def kill(self, database: psycopg.Connection) -> set[str]:
        """Kill it in the middle of its work; return the tokens of messages that it was ending."""
        os.kill(self._life, signal.SIGSTOP)
        time.sleep(_LOOK_S)  # for statements that the database has received
        ending = "SELECT token::text FROM alerts_notification WHERE state = 'ending'"
        tokens = {token for (token,) in database.execute(ending)}
        os.kill(self._life, signal.SIGKILL)
        self._life = self._next()
        return tokens

    def stop(self) -> None:
        """End it."""
        with suppress(ProcessLookupError):
            os.kill(self._life, signal.SIGKILL)
        self._process.terminate()
        self._process.wait()

    def _next(self) -> int:
        assert self._process.stdout  # noqa: S101
        line = self._process.stdout.readline()
        if not line:
            raise Problem("The worker cannot start: see var/log/mail-chaos.log")
        return int(line)


class Chaos:
    """Schedules on one database and worker."""

    def __init__(
        self,
        database: psycopg.Connection,
        worker: Worker,
        smtp: FailingServer,
        http: FailingServer,
    ) -> None:
        self._database, self._worker = database, worker
        self._servers = {smtp: mail_server.STEPS, http: http_server.STEPS}
        self._server_of = {"mail": smtp, "webhook": http, "chat": http}
        self.totals: Counter[str] = Counter()
        self.failures: list[str] = []
        database.cursor().executemany(
            "INSERT INTO alerts_channel (name, kind, address, secret, min_severity, rules, enabled)"
            " VALUES (%(kind)s, %(kind)s, %(url)s, 'secret', 2, '{}', true)",
            [{"kind": kind, "url": f"http://127.0.0.1:{http.port}/"} for kind in _CHANNELS],
        )

    def run(self, seed: int) -> str:
        """Run a schedule; return a line about it."""
        chance = Random(seed)
        begun = time.monotonic()
        count = chance.randint(0, _FAULTS)
        for server, steps in self._servers.items():
            server.results.clear()
            server.unread = 0
            faults = [
                (chance.choice(steps), chance.choices(KINDS, (4, 2, 1, 3, 1, 3))[0])
                for _ in range(count)
            ]
            mixed = [*faults, *[None] * (_NOTIFICATIONS + chance.randint(0, 3))]
            chance.shuffle(mixed)
            server.faults = deque(mixed)
        self._write(chance)
        ending = self._until_final(chance)
        problems = self._compare(ending)
        self.failures += [f"seed {seed}: {problem}" for problem in problems]
        return f"seed {seed:<5} {time.monotonic() - begun:5.1f} s  {len(problems)} problems"

    def _write(self, chance: Random) -> None:
        self._database.execute("TRUNCATE alerts_notification CASCADE")
        self._database.cursor().executemany(
            "INSERT INTO alerts_notification (token, channel_id, kind, key, recipient, address,"
            " subject, text, html, reason, state, created_at, requested_by, released_by,"
            " next_attempt_at, attempts, response, step)"
            " VALUES (%(token)s::uuid, (SELECT id FROM alerts_channel WHERE kind = %(kind)s),"
            " 'copy', '', 'alice', 'alice@example.org', 'A case', %(token)s::text, '', 'chaos',"
            " 'waiting', now(), '', '', now(), 0, '', '')",
            [
                {"token": str(uuid.uuid4()), "kind": chance.choice(tuple(self._server_of))}
                for _ in range(_NOTIFICATIONS)
            ],
        )

    def _until_final(self, chance: Random) -> set[str]:
        """Kill the worker at some times; return the tokens that it was ending."""
        ending: set[str] = set()
        kills = sorted(chance.uniform(0, 0.6) for _ in range(chance.randint(0, _KILLS)))
        begun = time.monotonic()
        while not self._is_final():
            now = time.monotonic() - begun
            if kills and now >= kills[0]:
                kills.pop(0)
                ending |= self._worker.kill(self._database)
                self.totals["kills"] += 1
            if now > _PATIENCE_S:
                raise Problem(f"Notifications are still waiting after {_PATIENCE_S:.0f} s")
            # The time of the next attempt has come.
            self._database.execute(
                "UPDATE alerts_notification SET next_attempt_at = now()"
                " WHERE state = 'waiting' AND next_attempt_at > now()"
            )
            time.sleep(_LOOK_S)
        return ending

    def _is_final(self) -> bool:
        states = self._database.execute("SELECT DISTINCT state FROM alerts_notification")
        return {state for (state,) in states} <= _FINAL

    def _compare(self, ending: set[str]) -> list[str]:
        """Compare states with what the server received, also after the portal gave up."""
        while any(server.open for server in self._servers):
            time.sleep(_LOOK_S)
        rows = self._database.execute(
            "SELECT token::text, coalesce(channel.kind, 'mail'), state, response"
            " FROM alerts_notification AS notification"
            " LEFT JOIN alerts_channel AS channel ON channel.id = notification.channel_id"
        ).fetchall()
        tokens = {token for token, *_ in rows}
        problems = [
            f"unknown: {token}"
            for server in self._servers
            for token in server.results.keys() - tokens
        ]
        unread = 0  # uncertain chats that their server did not receive
        for token, kind, state, response in rows:
            results = self._server_of[kind].results[token]
            received = results["accepted"] + results["died"]
            lost = (not received and state == "sent") or (state == "failed" and received)
            self.totals[kind] += 1
            self.totals[state] += 1
            self.totals["lost"] += lost
            self.totals["duplicated"] += received > 1
            self.totals["repeated webhooks"] += results["repeated"]
            # A worker that was killed while ending a message may have recorded the answer before.
            is_wrong = token not in ending and (
                (state == "uncertain") != (kind != "webhook" and bool(results["died"]))
            )
            is_unread = is_wrong and kind == "chat" and not received
            unread += is_unread
            if lost or received > 1 or (is_wrong and not is_unread):
                problems.append(f"{kind} {state} ({response}), server: {dict(results)}")
        if unread > self._server_of["chat"].unread:
            problems.append(f"{unread} chats are uncertain without a reason")
        return problems

    def save(self, out: Path, schedules: int) -> None:
        """Write the results so far."""
        smtp, http = self._servers
        content = {
            "schedules": schedules,
            **{name: self.totals[name] for name in _TOTALS},
            "injected": dict(sorted(smtp.injected.items())),
            "injected into HTTP": dict(sorted(http.injected.items())),
            "failures": self.failures,
        }
        out.write_text(json.dumps(content, indent=1) + "\n")


@contextmanager
def _new_database(url: str) -> Iterator[str]:
    """Create a migrated database, and drop it at the end; provide its URL."""
    name = f"ioportal_mail_chaos_{os.getpid()}"
    own, maintenance = (
        urlsplit(url)._replace(path=f"/{each}").geturl() for each in (name, "postgres")
    )
    with psycopg.connect(maintenance, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")
        try:
            migrate = (sys.executable, "manage.py", "migrate", "--verbosity", "0")
            environment = os.environ | {"DATABASE_URL": own}
            subprocess.run(migrate, cwd=CHECKOUT, env=environment, check=True)
            yield own
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="chaos.mails", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="how many")
    parser.add_argument("--seed", type=int, help="run only this seed")
    parser.add_argument("--out", type=Path, default=FILE, help="file of the results")
    arguments = parser.parse_args()
    seeds = range(1, arguments.seeds + 1) if arguments.seed is None else [arguments.seed]
    say("Creating a database")
    log = VAR / "log" / "mail-chaos.log"
    with (
        _new_database(os.environ["DATABASE_URL"]) as url,
        FailingServer(mail_server.SmtpConversation) as smtp,
        FailingServer(http_server.HttpConversation) as http,
        psycopg.connect(url, autocommit=True) as database,
        log.open("wb") as output,
    ):
        environment = os.environ | {
            "DATABASE_URL": url,
            "IOPORTAL_SMTP_URL": f"smtp://127.0.0.1:{smtp.port}",
            "IOPORTAL_SMTP_TIMEOUT": "1s",
            "IOPORTAL_CHANNEL_NETWORKS": "127.0.0.0/8",
        }
        worker = Worker(environment, output)
        chaos = Chaos(database, worker, smtp, http)
        try:
            for done, seed in enumerate(seeds, start=1):
                say(f"{done:>4}/{len(seeds)} {chaos.run(seed)}")
                chaos.save(arguments.out, done)
        finally:
            worker.stop()
    if chaos.failures:
        raise Problem("\n".join([*chaos.failures, f"The worker's log is {log}"]))
    say(f"Nothing was lost or sent twice: see {arguments.out}")


if __name__ == "__main__":
    sys.exit(exit_status(main))
