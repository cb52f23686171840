"""The agent's process: one reading and one shipping thread per source."""

import fcntl
import signal
import ssl
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import httpx

from collectors.agent import durable, logs, memory, sources, status
from collectors.agent.config import Config, ConfigError, SourceConfig
from collectors.agent.delivery import identity
from collectors.agent.delivery.shipper import TIMEOUT, Shipper
from collectors.agent.delivery.spool import Spool
from collectors.agent.health import Health
from collectors.agent.read_loop import ReadLoop

AFTER_FAULT_S = 10.0

_LOG = logs.Log(__name__)


def run(config: Config) -> None:
    """Read and ship until SIGTERM or SIGINT; finish current batches before returning.

    Raises:
        ConfigError: another agent uses the same state folder.
    """
    memory.retain_freed()
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with _alone(config.state), _client(config) as client:
        instance = identity.instance(config.state)
        running = [_Running(config, source, client, instance) for source in config.sources]
        threads = [thread for source in running for thread in source.threads(stop)]
        _LOG.info("agent_started", sources=[source.name for source in running])
        for thread in threads:
            thread.start()
        while not stop.wait(status.EVERY_S):
            _write_status(config, running)
        for thread in threads:
            thread.join()
        for source in running:
            source.close()
        _write_status(config, running)
    _LOG.info("agent_stopped")


class _Running:
    """A source with its reader and shipper."""

    def __init__(
        self, config: Config, source: SourceConfig, client: httpx.Client, instance: str
    ) -> None:
        self.name = source.name
        self._health = Health(source.name)
        self._spool = Spool(config.state / source.name, config.spool_bytes)
        self._reader = sources.reader_of(source, self._spool.folder)
        self._read_loop = ReadLoop(
            self._reader, self._spool, sources.interval_s(source), self._health
        )
        self._shipper = Shipper(self._spool, client, source.token_file, self._health, instance)
        self._feeder = (
            sources.feeder_of(source, self._spool, self._health)
            if sources.has_journal(source)
            else None
        )

    def threads(self, stop: Event) -> Iterator[Thread]:
        """Return the threads of the source."""
        yield self._thread("reading", lambda: self._read_loop.step(stop), stop)
        yield self._thread("delivery", self._shipper.step, stop)
        if self._feeder:
            yield self._thread("feeding", self._feeder, stop)

    def status(self) -> status.Status:
        """Return the status of the source."""
        return status.source_status(self._health, self._spool)

    def close(self) -> None:
        """Close open files."""
        self._reader.close()

    def _thread(self, task: str, step: sources.Step, stop: Event) -> Thread:
        def run() -> None:
            while not stop.is_set():
                stop.wait(self._guarded(task, step))

        return Thread(target=run, name=f"{self.name} {task}")

    def _guarded(self, task: str, step: sources.Step) -> float:
        try:
            pause_s = step()
        except Exception as error:  # noqa: BLE001  (a bug must not stop other sources)
            _LOG.fault("fault", error, source=self.name, task=task)
            self._health.failing(f"{task}_fault", repr(error))
            return AFTER_FAULT_S
        self._health.working(f"{task}_fault")
        return pause_s


def _write_status(config: Config, running: list[_Running]) -> None:
    try:
        status.write(
            config.state, config.metrics, {source.name: source.status() for source in running}
        )
    except OSError as error:  # the disk is full; reading and shipping go on
        _LOG.error("status_not_written", reason=str(error))


def _client(config: Config) -> httpx.Client:
    verify = ssl.create_default_context(cafile=config.ca_file) if config.ca_file else True
    return httpx.Client(base_url=config.url, timeout=TIMEOUT, verify=verify, trust_env=False)


@contextmanager
def _alone(state: Path) -> Iterator[None]:
    durable.make_folder(state)
    if state.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise ConfigError(f"{state}: other users can write to it: chmod 700 {state}")
    with (state / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(f"{state}: another agent uses this state folder") from None
        yield
