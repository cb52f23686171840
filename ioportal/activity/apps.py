"""The app of top consumers, baselines, impact and incidents."""

from django.apps import AppConfig


class ActivityConfig(AppConfig):
    """The app."""

    name = "ioportal.activity"
