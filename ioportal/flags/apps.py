"""Django app of flags."""

from django.apps import AppConfig


class FlagsConfig(AppConfig):
    """Configuration of the app."""

    name = "ioportal.flags"
