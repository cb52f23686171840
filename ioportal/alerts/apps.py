"""Django app of mails about cases."""

from django.apps import AppConfig


class AlertsConfig(AppConfig):
    """Configuration of the app."""

    name = "ioportal.alerts"

    def ready(self) -> None:
        """Connect the receivers of signals."""
        from ioportal.alerts import joined_cases  # noqa: F401, PLC0415  (needs models)
