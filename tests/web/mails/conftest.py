"""The mail server and the storm of the tests of alerts."""

from tests.alerts.conftest import automatic, mails, storm

__all__ = ["automatic", "mails", "storm"]
