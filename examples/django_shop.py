"""A Django project in one file: an order and its job in one ``transaction.atomic``.

    export HOROLOG_DATABASE_URL=postgresql://…           # in examples/
    python django_shop.py horolog migrate
    python django_shop.py shop                           # orders something
    python django_shop.py horolog worker django_shop:worker
    python django_shop.py runserver                      # /admin/

A real project has this in its settings, its models and its views; the lines are the same.
"""

import os
import sys
from datetime import UTC, datetime

import django
from django.conf import settings
from django.core.management import execute_from_command_line
from django.urls import path
from psycopg.conninfo import conninfo_to_dict

if not settings.configured:
    _at = conninfo_to_dict(os.environ["HOROLOG_DATABASE_URL"])
    settings.configure(
        SECRET_KEY="only an example",
        DEBUG=True,
        ALLOWED_HOSTS=["localhost", "127.0.0.1", "testserver"],
        ROOT_URLCONF=__name__,
        USE_TZ=True,
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        DATABASES={
            "default": {
                "ENGINE": "django.db.backends.postgresql",
                "NAME": _at.get("dbname"),
                "USER": _at.get("user"),
                "PASSWORD": _at.get("password"),
                "HOST": _at.get("host"),
                "PORT": _at.get("port"),
                "OPTIONS": {"options": _at.get("options") or ""},
            }
        },
        INSTALLED_APPS=[
            "django.contrib.admin",
            "django.contrib.auth",
            "django.contrib.contenttypes",
            "django.contrib.messages",
            "django.contrib.sessions",
            "horolog.django.HorologConfig",
        ],
        HOROLOG={"NAMESPACE": os.environ.get("HOROLOG_NAMESPACE", "horolog"), "ACTOR": "shop"},
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
            "django.contrib.messages.middleware.MessageMiddleware",
        ],
        TEMPLATES=[
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "APP_DIRS": True,
                "OPTIONS": {
                    "context_processors": [
                        "django.template.context_processors.request",
                        "django.contrib.auth.context_processors.auth",
                        "django.contrib.messages.context_processors.messages",
                    ]
                },
            }
        ],
    )
    django.setup()

from django.contrib import admin
from django.db import connection, transaction

from horolog import Job, Once, Run
from horolog.django import DjangoWorker, scheduler

urlpatterns = [path("admin/", admin.site.urls)]
worker = DjangoWorker()


@worker.handles("orders.bill")
def bill(run: Run, order: int) -> None:
    """Marks the order as billed, by Django's own connection."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE shop_orders SET billed = true WHERE number = %s", [order])


def place(order: int) -> Job:
    """An order and its job: both, or neither."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("INSERT INTO shop_orders (number) VALUES (%s)", [order])
        return scheduler().register(
            "orders.bill",
            schedule=Once(datetime.now(UTC)),
            payload={"order": order},
            key=f"bill-{order}",
            owner="shop",
        )


def shop() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE IF NOT EXISTS shop_orders (number int PRIMARY KEY,"
            " billed boolean NOT NULL DEFAULT false)"
        )
    job = place(1)
    print(f"order 1: job {scheduler().job(job.id).key} is {scheduler().job(job.id).status}")


if __name__ == "__main__":
    if sys.argv[1:] == ["shop"]:
        shop()
    else:
        execute_from_command_line(sys.argv)
