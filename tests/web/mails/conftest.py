"""The mail server and the storm of the tests of alerts."""

from tests.alerts.conftest import automatic, later, mails, storm

__all__ = ["automatic", "later", "mails", "storm"]
