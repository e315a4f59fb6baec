"""The app. Django finds its commands and its admin page by it; it has no tables of its own."""

from django.apps import AppConfig


class HorologConfig(AppConfig):
    name = "horolog.interface.integrations.django"
    label = "horolog"
    verbose_name = "Horolog"
    default_auto_field = "django.db.models.BigAutoField"
