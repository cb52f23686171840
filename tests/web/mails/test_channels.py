"""Channels and bounced addresses on the Site page."""

import pytest

from ioportal.alerts.models import BouncedAddress, Channel, Notification


@pytest.fixture
def channel(db):
    return Channel.objects.create(name="ops", kind="webhook", address="https://example.org/hook")


def test_staff_send_a_test_message(as_staff, channel):
    chosen = {"action": "send_test", "_selected_action": [channel.pk]}
    page = as_staff.post("/admin/alerts/channel/", chosen, follow=True)

    assert "The test messages are in the outbox" in page.content.decode()
    message = Notification.objects.get()
    assert (message.channel, message.subject) == (channel, "Test of the channel ops")
    shown = as_staff.get(f"/mails/{message.pk}/").content.decode()
    assert "example.org" not in shown  # the URL may be a secret


def test_an_invalid_channel_is_refused(as_staff, channel):
    facts = {"name": "x", "kind": "chat", "address": "http://example.org", "secret": "s",
             "min_severity": 2, "rules": "nothing", "enabled": "on"}  # fmt: skip
    page = as_staff.post("/admin/alerts/channel/add/", facts).content.decode()

    assert "The URL must begin with https://." in page
    assert "nothing is not one of the available choices" in page
    assert Channel.objects.count() == 1


def test_staff_clear_a_bounced_address(as_staff, db):
    row = BouncedAddress.objects.create(address="alice@example.org", reason="5.1.1")
    page = as_staff.get("/admin/alerts/bouncedaddress/").content.decode()
    assert "alice@example.org" in page

    as_staff.post(f"/admin/alerts/bouncedaddress/{row.pk}/delete/", {"post": "yes"})

    assert not BouncedAddress.objects.exists()
