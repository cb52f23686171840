"""The web server while its database, its broker or its clients are frozen."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection, transaction
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from ioportal.core.postgres import base
from ioportal.ingest.models import Stream
from scripts import serve
from scripts.bootstrap import NGINX
from tests.api.conftest import sources, token  # noqa: F401  (fixtures)
from tests.batches import ARROW, arrow, traced, window
from tests.conftest import REPOSITORY
from tests.processes import ENDS_WITH_PARENT, descendants

pytestmark = [pytest.mark.long, pytest.mark.django_db(transaction=True)]

STARTS_WITHIN_S = 60
ANSWERS_WITHIN_S = 15.0  # a minute and more without the limits
STATEMENT_TIMEOUT_S = 2
IDLE_CLIENTS_COST_S = 5.0  # 8 s and more if they use the connections of all workers
HTTP = {"timeout": 60, "trust_env": False, "verify": False}  # the test creates its certificate


class Relay:
    """A relay to the socket of a service; it can be frozen and killed."""

    def __init__(self, listen, *target):
        self._command = [
            *ENDS_WITH_PARENT,
            sys.executable,
            "-m",
            "tests.relay",
            str(listen),
            *target,
        ]
        self._listen = listen
        self.start()

    def start(self):
        self._process = subprocess.Popen(self._command, cwd=REPOSITORY)
        wait_for(lambda: can_connect(self._listen), "the relay")

    @contextmanager
    def frozen(self):
        os.kill(self._process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self._process.pid, signal.SIGCONT)

    @contextmanager
    def gone(self):
        self.stop()
        yield
        self.start()

    def stop(self):
        self._process.kill()
        self._process.wait()
        self._listen.unlink(missing_ok=True)


def can_connect(path):
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


def wait_for(condition, what):
    until = time.monotonic() + STARTS_WITHIN_S
    while not condition():
        assert time.monotonic() < until, f"{what}: not within {STARTS_WITHIN_S} s"
        time.sleep(0.1)


class Portal:
    """A client of the web server, with a session and the token of a source."""

    def __init__(self, port, session, secret, url=None, pid=None):
        self.port, self.pid = port, pid
        self.url = url or f"http://127.0.0.1:{port}"
        self._session, self.secret = session, secret
        self._client = httpx.Client(
            base_url=self.url, limits=httpx.Limits(max_connections=None), **HTTP
        )
        self._sequence = 0

    def get(self, path, **headers):
        cookie = {"Cookie": f"sessionid={self._session}"}
        return self.timed(lambda: self._client.get(path, headers=cookie | headers))

    def log_in(self):
        """Log in like a browser: get the form with its CSRF token, then post it."""
        with httpx.Client(base_url=self.url, **HTTP) as browser:

            def both():
                page = browser.get("/login/")
                form_token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.text)[1]
                return browser.post(
                    "/login/",
                    data={"csrfmiddlewaretoken": form_token, "username": "sam", "password": "sam"},
                    headers={"Referer": f"{self.url}/login/"},
                )

            return self.timed(both)

    def deliver(self, batch):
        manifest, rows = batch
        return self.timed(
            lambda: self._client.post(
                "/api/v1/ingest/batches",
                headers={
                    "Authorization": f"Token {self.secret}",
                    "Idempotency-Key": f"{manifest['stream']}/{manifest['sequence']}",
                },
                files={
                    "batch": ("batch", json.dumps(manifest).encode()),
                    "rows": ("rows", arrow(manifest["table"], rows), ARROW),
                },
            )
        )

    def behind(self, url):
        """Return a client of the same portal at the address of a proxy."""
        return Portal(self.port, self._session, self.secret, url)

    @staticmethod
    def timed(request):
        begun = time.monotonic()
        answer = request()
        answer.seconds = time.monotonic() - begun
        return answer


@pytest.fixture
def folder():
    path = Path(tempfile.mkdtemp(prefix="ioportal-", dir="/tmp"))  # a short path, for sockets
    yield path
    shutil.rmtree(path)


@pytest.fixture
def database(environment, folder):
    parts = conninfo_to_dict(environment["DATABASE_URL"])
    host, port = parts.get("host", "localhost"), str(parts.get("port") or 5432)
    target = [f"{host}/.s.PGSQL.{port}"] if host.startswith("/") else [host, port]
    environment["DATABASE_URL"] = make_conninfo(
        environment["DATABASE_URL"], host=str(folder), port="5432"
    )
    relay = Relay(folder / ".s.PGSQL.5432", *target)
    yield relay
    relay.stop()


@pytest.fixture
def broker(environment, folder):
    url = urlsplit(environment["IOPORTAL_BROKER_URL"])
    target = [url.path] if url.scheme == "redis+socket" else [url.hostname, str(url.port or 6379)]
    path = folder / "broker.sock"
    environment["IOPORTAL_BROKER_URL"] = f"redis+socket://{path}?virtual_host=9"
    relay = Relay(path, *target)
    yield relay
    relay.stop()


@pytest.fixture
def https():
    return "no"


@pytest.fixture
def portal(environment, folder, database, broker, client, token, https):  # noqa: F811
    port = serve.free_port(21_000)
    command = serve.commands(port, folder)["web"]
    user = User.objects.create_superuser("sam", password="sam")  # noqa: S106
    client.force_login(user)
    environment["DJANGO_SETTINGS_MODULE"] = "tests.e2e.settings"
    environment["IOPORTAL_HTTPS"] = https
    environment["IOPORTAL_STATEMENT_TIMEOUT"] = f"{STATEMENT_TIMEOUT_S}s"
    process = subprocess.Popen(
        [*ENDS_WITH_PARENT, *command],
        cwd=REPOSITORY, env=environment, start_new_session=True,
    )  # fmt: skip
    started = Portal(port, client.session.session_key, token("mds1-trace"), pid=process.pid)

    def is_ready():
        try:
            return started.get("/readyz").status_code == HTTPStatus.OK
        except httpx.TransportError:
            return False

    try:
        wait_for(is_ready, "the portal")
        yield started
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        database.stop()
        with connection.cursor() as cursor:
            wait_for(lambda: not others(cursor), "the end of the server's connections")


def others(cursor):
    cursor.execute(
        "SELECT 1 FROM pg_stat_activity WHERE datname = current_database()"
        " AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
    )
    return cursor.fetchall()


def in_parallel(*requests):
    with ThreadPoolExecutor(len(requests)) as clients:
        return [future.result() for future in [clients.submit(request) for request in requests]]


def batch(number):
    seconds = (
        f"12:{number // 15:02}:{number % 15 * 4:02}",
        f"12:{number // 15:02}:{number % 15 * 4 + 4:02}",
    )
    return traced(number + 1, *seconds, window(seconds[0], "42@gni"))


def everything(portal, first):
    """Return 26 requests of every kind."""
    return [
        *[lambda path=path: portal.get(path) for path in ("/healthz", "/readyz", "/", "/jobs/")]
        * 4,
        *[portal.log_in] * 2,
        *[lambda n=n: portal.deliver(batch(n)) for n in range(first, first + 8)],
    ]


def test_a_frozen_broker_delays_no_request(portal, broker):
    before = in_parallel(*everything(portal, 0))
    with broker.frozen():
        answers = in_parallel(*everything(portal, 8)) + in_parallel(*everything(portal, 16))
    wait_for(lambda: portal.get("/readyz").json()["broker"] == "ok", "the broker")

    assert {answer.status_code for answer in before} == {200, 202, 302}
    assert max(answer.seconds for answer in answers) < ANSWERS_WITHIN_S
    assert {answer.status_code for answer in answers} == {200, 202, 302}
    assert answers[1].json() == {"database": "ok", "broker": "unavailable"}


def test_a_frozen_database_is_a_page_that_reloads_itself(portal, database):
    assert portal.get("/jobs/").status_code == HTTPStatus.OK
    with database.frozen():
        time.sleep(1.1)  # a result of the readiness check is used for a second
        page, export, part, api, ready, alive = in_parallel(
            lambda: portal.get("/jobs/", Accept="text/html"),
            lambda: portal.get("/jobs/?format=json"),
            lambda: portal.get("/jobs/", **{"HX-Request": "true"}),
            lambda: portal.deliver(batch(0)),
            lambda: portal.get("/readyz"),
            lambda: portal.get("/healthz"),
        )
    wait_for(lambda: portal.get("/readyz").status_code == HTTPStatus.OK, "the database")

    answers = [page, export, part, api, ready]
    assert [answer.status_code for answer in answers] == [503] * 5
    assert max(answer.seconds for answer in answers) < 2 * ANSWERS_WITHIN_S
    assert alive.text == "ok\n"
    assert '<meta http-equiv="refresh" content="10">' in page.text
    assert "<h1>Database not available</h1>" in page.text
    assert page.headers["Retry-After"] == "10"
    assert export.json()["code"] == api.json()["code"] == "database"
    assert part.text == (
        "The database is not available. Nothing is lost. Try again in a few seconds."
    )
    assert portal.get("/jobs/").status_code == HTTPStatus.OK
    assert portal.deliver(batch(0)).status_code == HTTPStatus.ACCEPTED


def test_a_query_that_a_frozen_database_does_not_answer_ends_on_this_side(
    database, environment, monkeypatch
):
    monkeypatch.setattr(base, "_CANCELLATION_S", 0.5)
    host = conninfo_to_dict(environment["DATABASE_URL"])["host"]
    wrapper = base.DatabaseWrapper({**connection.settings_dict, "HOST": host, "PORT": "5432"})
    wrapper.statement_timeout_s = 0.5
    with wrapper.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        assert cursor.fetchone() == ("500ms",)
    try:
        begun = time.monotonic()
        with database.frozen(), pytest.raises(OperationalError), wrapper.cursor() as cursor:
            cursor.execute("SELECT 1")
        assert 1 <= time.monotonic() - begun < ANSWERS_WITHIN_S
        assert not wrapper.is_usable()  # a late answer cannot be taken for another
    finally:
        wrapper.close()


def test_a_database_that_is_gone_is_the_same_page(portal, database):
    with database.gone():
        page, form = portal.get("/jobs/"), portal.log_in()
    wait_for(lambda: portal.get("/readyz").status_code == HTTPStatus.OK, "the database")

    assert page.status_code == form.status_code == HTTPStatus.SERVICE_UNAVAILABLE
    assert "This page reloads every 10 seconds." in page.text
    assert "refresh" not in form.text
    assert "The change may not be saved." in form.text


@pytest.mark.usefixtures("database")
def test_a_lock_that_a_frozen_worker_keeps_delays_a_delivery_for_seconds(portal):
    assert portal.deliver(batch(0)).status_code == HTTPStatus.ACCEPTED
    with transaction.atomic():
        list(Stream.objects.select_for_update())
        refused = portal.deliver(batch(1))

    assert (refused.status_code, refused.json()["code"]) == (503, "busy")
    assert refused.seconds < ANSWERS_WITHIN_S
    assert portal.deliver(batch(1)).status_code == HTTPStatus.ACCEPTED


@pytest.mark.usefixtures("database")
def test_a_page_that_times_out_shows_the_selection(portal):
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("LOCK TABLE jobs_job")  # every query of jobs waits
        path = "/jobs/?user=alice"
        home, page, export, part, stored = in_parallel(
            lambda: portal.get("/"),
            lambda: portal.get(path),
            lambda: portal.get(f"{path}&format=csv"),
            lambda: portal.get(path, **{"HX-Request": "true"}),
            lambda: portal.deliver(batch(0)),
        )

    assert [page.status_code, export.status_code, part.status_code] == [503] * 3
    assert home.status_code == HTTPStatus.SERVICE_UNAVAILABLE
    assert "<h1>Query took too long</h1>" in home.text
    assert '<a href="/">Reload this page</a>' in home.text
    assert "Retry-After" not in home.headers
    assert "refresh" not in home.text
    assert "<h1>Too much data selected</h1>" in page.text
    assert "<li>user: alice</li>" in page.text
    assert "Retry-After" not in page.headers
    assert export.json() == {
        "title": "Service Unavailable",
        "status": 503,
        "code": "too_much_data",
        "detail": (
            "/jobs/ was stopped: one of its queries took longer than 2 s (user = alice)."
            " Select a shorter time range or add filters."
        ),
        "request_id": export.headers["X-Request-ID"],
    }
    assert part.text == export.json()["detail"]
    assert stored.status_code == HTTPStatus.ACCEPTED


def test_deliveries_that_wait_leave_threads_for_pages(portal):
    with ThreadPoolExecutor(16) as agents:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("LOCK TABLE ingest_batch")
            deliveries = [agents.submit(portal.deliver, batch(n)) for n in range(16)]
            time.sleep(1)
            pages = in_parallel(portal.log_in, *[lambda: portal.get("/jobs/")] * 8)
        stored = {delivery.result().status_code for delivery in deliveries}

    assert {page.status_code for page in pages} == {200, 302}
    assert max(page.seconds for page in pages) < ANSWERS_WITHIN_S
    assert stored == {HTTPStatus.ACCEPTED}


SLOW_FORM = (
    "POST /login/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999\r\n"
    "Content-Type: application/x-www-form-urlencoded\r\nCookie: csrftoken={}\r\n\r\n."
).format("x" * 32)
SLOW_BATCH = (
    "POST /api/v1/ingest/batches HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999\r\n"
    "Content-Type: multipart/form-data; boundary=x\r\nAuthorization: Token {}\r\n\r\n-"
)
SLOW_HEADERS = "GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: "
HTTP_2 = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"  # has no time limit for headers


def test_hundreds_of_slow_requests_delay_no_other(portal):
    texts = [SLOW_FORM, SLOW_BATCH.format(portal.secret)] * 150 + [SLOW_HEADERS, HTTP_2] * 100
    with ExitStack() as clients:
        slow = [
            clients.enter_context(socket.create_connection(("127.0.0.1", portal.port)))
            for _ in texts
        ]
        for client, text in zip(slow, texts, strict=True):
            client.sendall(text.encode())
        answers = in_parallel(*everything(portal, 0))
        first = slow[0].recv(99)  # after ten seconds without another byte
        refused = slow[-1].recv(99)

    assert max(answer.seconds for answer in answers) < 2 * ANSWERS_WITHIN_S
    assert {answer.status_code for answer in answers} == {200, 202, 302}
    assert first.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert refused == b""  # closed


def test_idle_connections_and_a_killed_worker_keep_nobody_out(portal):
    in_parallel(*[portal.log_in] * 8)  # both workers have started
    idle = [socket.create_connection(("127.0.0.1", portal.port)) for _ in range(2_000)]
    for connected in idle:
        connected.send(b"G")
    log_ins = [portal.log_in() for _ in range(4)]
    for connected in idle:
        connected.close()
    workers = web_workers(portal.pid)
    os.kill(workers[0], signal.SIGKILL)
    killed = Path(f"/proc/{workers[0]}")  # its connections are open until it is gone
    wait_for(lambda: not killed.exists(), "the end of the killed worker")
    wait_for(lambda: len(web_workers(portal.pid)) == len(workers), "a new worker")

    assert max(answer.seconds for answer in log_ins) < IDLE_CLIENTS_COST_S
    assert {portal.get("/readyz").status_code for _ in range(8)} == {HTTPStatus.OK}


def web_workers(server):
    """Return the process ids of the server's workers."""
    return [
        pid
        for pid in descendants(server)
        if b"granian" in (name := Path(f"/proc/{pid}/cmdline").read_bytes())
        or b"spawn_main" in name
    ]


@pytest.fixture
def nginx(portal, folder):
    """The example of deploy/ in front of the portal; only addresses and the certificate differ."""
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin:{NGINX}/usr/sbin")
    if not program:
        pytest.skip("nginx is neither installed nor in var/nginx: run make setup-test")
    port = serve.free_port(22_000)
    run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost",
        "-keyout", folder / "key", "-out", folder / "certificate")  # fmt: skip
    site = (REPOSITORY / "deploy/nginx.conf").read_text()
    for written, here in (
        ("listen 80;", f"listen 127.0.0.1:{serve.free_port(port + 1)};"),
        ("listen 443 ssl;", f"listen 127.0.0.1:{port} ssl;"),
        ("127.0.0.1:8000", f"127.0.0.1:{portal.port}"),
        ("/etc/ssl/certs/io.example.org.pem", str(folder / "certificate")),
        ("/etc/ssl/private/io.example.org.key", str(folder / "key")),
    ):
        assert written in site
        site = site.replace(written, here)
    paths = "".join(
        f"{kind}_temp_path {folder}/{kind}; "
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/pid; error_log stderr; events {{}}"
        f"http {{ access_log off; {paths} {site} }}"
    )
    command = [program, "-p", folder, "-e", "stderr", "-c", folder / "nginx.conf"]
    run(*command, "-t")
    process = subprocess.Popen([*ENDS_WITH_PARENT, *command])
    try:
        wait_for(lambda: serve.free_port(port) != port, "nginx")
        yield portal.behind(f"https://127.0.0.1:{port}")
    finally:
        process.terminate()
        process.wait()


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("https", ["yes"])
def test_the_example_proxy_forwards_requests(nginx, portal):
    page, login, stored = nginx.get("/jobs/"), nginx.log_in(), nginx.deliver(batch(0))
    too_large = httpx.post(nginx.url, content=bytes(34 << 20), **HTTP)

    assert (page.status_code, login.status_code, stored.status_code) == (200, 302, 202)
    assert "Secure" in login.headers["Set-Cookie"]
    assert page.headers["Strict-Transport-Security"] == "max-age=31536000"
    assert too_large.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    assert portal.get("/jobs/").status_code == HTTPStatus.MOVED_PERMANENTLY  # without the proxy
