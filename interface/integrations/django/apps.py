"""The app. Django finds its commands and its admin page by it; it has no tables of its own."""

from django.apps import AppConfig


class HorologConfig(AppConfig):
    """The app for ``INSTALLED_APPS``: the command ``horolog``, and the jobs in the admin."""

    name = "horolog.interface.integrations.django"
    label = "horolog"
    verbose_name = "Horolog"
    default_auto_field = "django.db.models.BigAutoField"
