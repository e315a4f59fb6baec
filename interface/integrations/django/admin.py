"""The admin page: jobs and dead letters to look at, and the commands that a person gives.

Each command is one of the log's, with the user's name in its reason; Django writes nothing itself.
Who may change (the ``change`` permission of the model) may give commands, who may view may look.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from horolog.domain.errors import HorologError
from horolog.interface.integrations.django.models import DeadLetter, Job
from horolog.interface.integrations.django.scheduling import scheduler


def _each(
    request: HttpRequest, chosen: QuerySet[Any], what: str, command: Callable[[Any, str], Any]
) -> None:
    """Gives the command for each; what one is refused for stops no other."""
    reason, done = f"{request.user.get_username()} in the admin", 0
    for row in chosen:
        try:
            command(row.id, reason)
            done += 1
        except HorologError as error:
            messages.error(request, f"{row}: {error}")
    if done:
        messages.success(request, f"{done} {what}")


if TYPE_CHECKING:
    _Admin = admin.ModelAdmin[Any]
else:  # Django's own class takes no parameters
    _Admin = admin.ModelAdmin


class LooksOnly(_Admin):
    """Rows are shown, never edited: they follow the log."""

    list_per_page = 50
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Of the list, for its actions; one row is shown without a way to save it."""
        return obj is None and super().has_change_permission(request, obj)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return [field.name for field in self.model._meta.fields]  # noqa: SLF001 - Django's own way


@admin.register(Job)
class JobAdmin(LooksOnly):
    list_display = ("__str__", "name", "status", "queue", "owner", "changed_at")
    list_filter = ("status", "queue")
    search_fields = ("key", "name", "owner")
    actions = ("pause", "resume", "run_now", "cancel")

    @admin.action(description="Pause", permissions=["change"])
    def pause(self, request: HttpRequest, chosen: QuerySet[Any]) -> None:
        _each(request, chosen, "paused", lambda id_, why: scheduler().pause(id_, reason=why))

    @admin.action(description="Resume", permissions=["change"])
    def resume(self, request: HttpRequest, chosen: QuerySet[Any]) -> None:
        _each(request, chosen, "resumed", lambda id_, why: scheduler().resume(id_, reason=why))

    @admin.action(description="Run once now", permissions=["change"])
    def run_now(self, request: HttpRequest, chosen: QuerySet[Any]) -> None:
        _each(request, chosen, "ordered", lambda id_, why: scheduler().trigger(id_, reason=why))

    @admin.action(description="Cancel for good", permissions=["change"])
    def cancel(self, request: HttpRequest, chosen: QuerySet[Any]) -> None:
        _each(request, chosen, "cancelled", lambda id_, why: scheduler().cancel(id_, reason=why))


@admin.register(DeadLetter)
class DeadLetterAdmin(LooksOnly):
    list_display = ("__str__", "owner", "cause", "kind", "attempt", "since")
    list_filter = ("owner", "name", "cause")
    actions = ("replay", "discard")

    @admin.action(description="Try again", permissions=["change"])
    def replay(self, request: HttpRequest, chosen: QuerySet[Any]) -> None:
        _each(request, chosen, "tried again", lambda id_, why: scheduler().replay(id_, reason=why))

    @admin.action(description="Discard", permissions=["change"])
    def discard(self, request: HttpRequest, chosen: QuerySet[Any]) -> None:
        _each(request, chosen, "discarded", lambda id_, why: scheduler().discard(id_, reason=why))
