"""The agent's process: for each source a thread that reads and one that ships."""

import fcntl
import importlib.metadata
import signal
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import httpx

from collectors.agent import durable, logs, ship
from collectors.agent.config import Config, Misconfigured, SourceConfig
from collectors.agent.growing import GrowingLog
from collectors.agent.health import Health
from collectors.agent.readers import Reader
from collectors.agent.ship import Shipper
from collectors.agent.source import Keeper
from collectors.agent.spool import Spool
from collectors.agent.traces import TraceReader

AFTER_FAULT_S = 10.0

_LOG = logs.of(__name__)


def run(config: Config) -> None:
    """Read and ship until SIGTERM or SIGINT; what is in hand then is finished.

    Raises:
        Misconfigured: an agent with this state runs already.
    """
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with _alone(config.state), _client(config) as client:
        threads = [
            thread for source in config.sources for thread in _threads(config, source, client, stop)
        ]
        _LOG.info("agent_started", sources=[source.name for source in config.sources])
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    _LOG.info("agent_stopped")


def _threads(
    config: Config, source: SourceConfig, client: httpx.Client, stop: Event
) -> Iterator[Thread]:
    health = Health()
    spool = Spool(config.state / source.name, config.spool_bytes)
    keeper = Keeper(source.name, _reader(source), spool, source.every_s, health)
    agent = {"version": importlib.metadata.version("polars"), "host": socket.getfqdn()}
    shipper = Shipper(source.name, spool, client, source.token_file, agent, health)
    yield _thread(source.name, lambda: keeper.step(stop), stop)
    yield _thread(source.name, shipper.step, stop)


def _thread(name: str, step: Callable[[], float], stop: Event) -> Thread:
    def run() -> None:
        while not stop.is_set():
            try:
                pause_s = step()
            except Exception:  # a fault of ours: the other sources must go on
                _LOG.exception("fault", source=name)
                pause_s = AFTER_FAULT_S
            stop.wait(pause_s)

    return Thread(target=run, name=name)


def _reader(source: SourceConfig) -> Reader:
    return TraceReader(GrowingLog(str(source.what), source.settled_s))


def _client(config: Config) -> httpx.Client:
    verify = ssl.create_default_context(cafile=config.ca_file) if config.ca_file else True
    return httpx.Client(base_url=config.url, timeout=ship.TIMEOUT, verify=verify, trust_env=False)


@contextmanager
def _alone(state: Path) -> Iterator[None]:
    durable.make_folder(state)
    with (state / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Misconfigured(f"{state}: another agent works with this state") from None
        yield
