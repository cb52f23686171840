"""The mail server and the storm of the tests of alerts."""

from tests.alerts.conftest import automatic, mails, storm, storm_case

__all__ = ["automatic", "mails", "storm", "storm_case"]
