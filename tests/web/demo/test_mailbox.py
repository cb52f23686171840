"""The mailbox of the demo: what a local mail server kept."""

import socket

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.handlers import Mailbox

from ioportal.alerts import planning
from ioportal.alerts.delivery import outbox
from ioportal.demo import mailbox
from tests.alerts.conftest import automatic, storm, storm_case

__all__ = ["automatic", "storm", "storm_case"]


@pytest.fixture
def _received(storm, automatic, settings, tmp_path, monkeypatch):
    """Send the mail about a storm to the mail server of the demo."""
    settings.DEMO = True
    monkeypatch.setattr(mailbox, "FOLDER", tmp_path / "mailbox")
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", port
    controller = Controller(Mailbox(mailbox.FOLDER), hostname="127.0.0.1", port=port)
    controller.start()
    planning.plan()
    outbox.send_due(10)
    controller.stop()


@pytest.mark.usefixtures("_received")
def test_the_mailbox_shows_mails_as_received(as_staff):
    [mail] = mailbox.latest()
    title = "Slows down other jobs: your jobs named storm on lake"

    assert title in as_staff.get("/tour/mailbox/").content.decode()
    page = as_staff.get(f"/tour/mailbox/{mail.key}/").content.decode()
    assert "Hello Alice Ng," in page
    assert 'src="/tour/mailbox/' in page
    html = as_staff.get(f"/tour/mailbox/{mail.key}/html/")
    assert 'src="data:image/png;base64,' in html.content.decode()
    assert "script" not in html["Content-Security-Policy"]
    assert html["X-Frame-Options"] == "SAMEORIGIN"


@pytest.mark.usefixtures("_received")
def test_the_mailbox_is_for_staff_of_a_demo(client, alice, as_staff, settings):
    [mail] = mailbox.latest()
    addresses = ["/tour/mailbox/", f"/tour/mailbox/{mail.key}/", "/tour/mailbox/../x/html/"]
    client.force_login(alice)
    assert {client.get(address).status_code for address in addresses} == {404}
    settings.DEMO = False
    assert {as_staff.get(address).status_code for address in addresses} == {404}
