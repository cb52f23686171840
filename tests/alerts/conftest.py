"""A mail server, and a storm that alice should get a mail about."""

from ipaddress import ip_network

import pytest
from django.db.models import F

from ioportal.alerts.decide import Mode
from ioportal.alerts.models import MailPolicy
from ioportal.findings.models import Case, Flag
from ioportal.site.models import UserAccount
from tests import loading, untraced
from tests.alerts import mail_server
from tests.web.conftest import cluster, new_case, new_flag, new_job, sam

__all__ = ["cluster", "new_case", "new_flag", "new_job", "sam"]


@pytest.fixture
def mails(settings):
    with mail_server.running(settings) as server:
        yield server


@pytest.fixture
def local_channels(settings):
    """Let channels call servers of tests."""
    settings.CHANNEL_NETWORKS = [ip_network("127.0.0.0/8")]


@pytest.fixture(scope="module")
def storm_case(module_site, module_logs):
    """Load a storm of alice once for all tests of a module; return the key of its case."""
    return load_storm(module_logs)


@pytest.fixture
def storm(storm_case):
    return Case.objects.get(pk=storm_case)


def load_storm(logs):
    """Load a storm of alice, as if it had been evaluated live; return the key of its case."""
    alice = {"full_name": "Alice Ng", "email": "alice@example.org"}
    UserAccount.objects.update_or_create(name="alice", defaults=alice)
    untraced.ingest(logs)
    flag = loading.evaluate()["impact", untraced.STORM]
    Flag.objects.update(opened_at=F("until"))
    return flag.case_id


@pytest.fixture
def automatic(db):
    return send_without_approval()


def send_without_approval():
    """Send mails without approval."""
    return MailPolicy.objects.create(
        default_mode=Mode.AUTOMATIC,
        wait="0", interval="04:00", repeat="7 00:00", daily_cap=2, hourly_brake=20, reason="test",
    )  # fmt: skip
