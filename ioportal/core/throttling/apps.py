"""The app that limits log-in attempts."""

from django.apps import AppConfig


class ThrottlingConfig(AppConfig):
    """Configuration of the app."""

    name = "ioportal.core.throttling"
