"""Tokens of the API: ``manage.py token create|list|revoke``."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from ioportal.api.models import Token
from ioportal.site.models import Source
from ioportal.telemetry import commands

_CLOCK = "%Y-%m-%d %H:%M"


class Command(commands.Command):
    """Creates, lists and revokes tokens."""

    help = "Create a token of the API and print its secret once, list tokens, or revoke a token."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        commands = parser.add_subparsers(dest="command", required=True)
        create = commands.add_parser("create", help="create a token and print its secret once")
        create.add_argument("scope", choices=Token.Scope.values)
        create.add_argument("--source", help="registered source whose batches it may send")
        create.add_argument("--user", help="user whose rights it has")
        create.add_argument("--name", default="", help="label, such as the host of the agent")
        create.add_argument("--days", type=int, help="validity in days; default: until revoked")
        commands.add_parser("list", help="list all tokens without their secrets")
        revoke = commands.add_parser("revoke", help="revoke a token")
        revoke.add_argument("number", type=int, help="number of the token in 'list'")

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002  (Django's signature)
        """Run the subcommand."""
        now = datetime.now(UTC)
        {"create": self._create, "list": self._list, "revoke": self._revoke}[options["command"]](
            options, now
        )

    def _create(self, options: dict[str, Any], now: datetime) -> None:
        days = options["days"]
        try:
            token, secret = Token.objects.all().issue(
                Token.Scope(options["scope"]),
                name=options["name"],
                source=_registered(options["source"]),
                user=_existing(options["user"]),
                expires_at=None if days is None else now + timedelta(days=days),
            )
        except (ValidationError, OverflowError) as error:
            messages = error.messages if isinstance(error, ValidationError) else [str(error)]
            raise CommandError(" ".join(messages)) from error
        self.stderr.write(f"Token {token.pk}. Its secret is shown only once:")
        self.stdout.write(secret)

    def _list(self, _options: dict[str, Any], now: datetime) -> None:
        tokens = Token.objects.all().with_states(now).select_related("source", "user")
        for token in tokens.order_by("pk"):
            facts = [
                f"{token.pk:>5}",
                f"{token.state:<9}",
                f"{token.scope} {token.source or token.user or ''}".strip(),
                token.name,
                f"last used {token.last_used_at:{_CLOCK}}" if token.last_used_at else "never used",
                f"expires {token.expires_at:{_CLOCK}}" if token.expires_at else "",
            ]
            self.stdout.write("  ".join(filter(None, facts)))

    def _revoke(self, options: dict[str, Any], now: datetime) -> None:
        if not Token.objects.filter(pk=options["number"]).revoke(now):
            raise CommandError(f"Token {options['number']} does not exist or is revoked already.")
        self.stdout.write(f"Token {options['number']} is revoked.")


def _registered(name: str | None) -> Source | None:
    if name is None:
        return None
    source = Source.objects.filter(name=name).first()
    if source is None:
        raise CommandError(
            f"Source {name!r} is not registered. Add it on the Site page, or as a [[source]] to "
            "the file that 'manage.py register' reads."
        )
    return source


def _existing(name: str | None) -> Any:
    if name is None:
        return None
    user = get_user_model().objects.filter(username=name).first()
    if user is None:
        raise CommandError(f"User {name!r} does not exist. Users are created on the Site page.")
    return user
