"""Base class of the management commands."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError, OutputWrapper

from ioportal.core.visible_text import visible_text
from ioportal.telemetry.free_space import Overload

if TYPE_CHECKING:
    from collections.abc import Callable


class Command(BaseCommand):
    """A command whose output contains no control characters, whatever names it prints."""

    requires_system_checks = ()  # `migrate` runs them; they import all pages, in seconds

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run the command on streams that print hidden characters as codes.

        A full disk of the database is an error that names the remedy.
        """
        error_style = self.stderr.style_func
        self.stdout = _Output(options.pop("stdout", None) or sys.stdout)
        self.stderr = _Output(options.pop("stderr", None) or sys.stderr)
        self.stderr.style_func = error_style
        try:
            return super().execute(*args, **options)
        except Overload as overload:
            raise CommandError(str(overload)) from overload


class _Output(OutputWrapper):
    def write(  # type: ignore[override]  # as Django declares it
        self,
        msg: str = "",
        style_func: Callable[[str], str] | None = None,
        ending: str | None = None,
    ) -> None:
        super().write(visible_text(msg), style_func, ending)
