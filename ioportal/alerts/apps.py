"""Django app of mails about cases."""

from django.apps import AppConfig


class AlertsConfig(AppConfig):
    """Configuration of the app."""

    name = "ioportal.alerts"
