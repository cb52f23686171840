"""The app of hypertables and coverage."""

from django.apps import AppConfig


class TelemetryConfig(AppConfig):
    """Configuration of the app."""

    name = "ioportal.telemetry"
