"""Base class of the management commands."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, OutputWrapper

from ioportal.visible_text import visible_text

if TYPE_CHECKING:
    from collections.abc import Callable


class Command(BaseCommand):
    """A command whose output contains no control characters, whatever names it prints."""

    requires_system_checks = ()  # `migrate` runs them; they import all pages, in seconds

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run the command on streams that print hidden characters as codes."""
        error_style = self.stderr.style_func
        self.stdout = _Output(options.pop("stdout", None) or sys.stdout)
        self.stderr = _Output(options.pop("stderr", None) or sys.stderr)
        self.stderr.style_func = error_style
        return super().execute(*args, **options)


class _Output(OutputWrapper):
    def write(  # type: ignore[override]  # as Django declares it
        self,
        msg: str = "",
        style_func: Callable[[str], str] | None = None,
        ending: str | None = None,
    ) -> None:
        super().write(visible_text(msg), style_func, ending)
