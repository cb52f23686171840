"""Django app of flags."""

from django.apps import AppConfig


class FindingsConfig(AppConfig):
    """Configuration of the app."""

    name = "ioportal.findings"
    label = "flags"  # of its tables and migrations
