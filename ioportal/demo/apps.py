"""The Django app of the demo."""

from django.apps import AppConfig


class DemoConfig(AppConfig):
    """A simulated centre, loaded through the collectors."""

    name = "ioportal.demo"
