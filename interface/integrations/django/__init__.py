"""Django: the app, a scheduler that follows ``transaction.atomic``, commands, and an admin page.

INSTALLED_APPS = [..., "horolog.django.HorologConfig"]
HOROLOG = {"DATABASE": "default", "NAMESPACE": "horolog"}
"""
