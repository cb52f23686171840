"""The app of filters, populations and trends."""

from django.apps import AppConfig


class ChangesConfig(AppConfig):
    """The app."""

    name = "ioportal.changes"
    label = "studies"  # of its tables and migrations
