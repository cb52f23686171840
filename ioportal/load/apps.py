"""The app of top consumers, baselines, impact and incidents."""

from django.apps import AppConfig


class LoadConfig(AppConfig):
    """The app."""

    name = "ioportal.load"
    label = "activity"  # of its tables and migrations
