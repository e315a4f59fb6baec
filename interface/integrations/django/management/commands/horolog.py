"""``manage.py horolog …``: Horolog's own command line, on the project's database.

python manage.py horolog migrate
python manage.py horolog scanner
python manage.py horolog worker shop.jobs:worker
python manage.py horolog job list
"""

import os
import sys
from argparse import ArgumentParser
from typing import Literal

from django.core.management.base import BaseCommand

from horolog.interface.integrations.django.configuration import configuration


class Command(BaseCommand):
    help = "Horolog's command line, on the database and the namespace of this project."
    requires_system_checks: list[str] | tuple[str, ...] | Literal["__all__"] = ()

    def run_from_argv(self, argv: list[str]) -> None:
        # What follows is Horolog's: its options are not Django's.
        self.handle(arguments=argv[2:])

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("arguments", nargs="*")

    def handle(self, *args: str, arguments: list[str], **options: object) -> None:
        from horolog.interface.cli.main import run

        found = configuration().settings
        # By the environment, since arguments can be read by everybody.
        os.environ["HOROLOG_DATABASE_URL"] = found.database_url()
        os.environ["HOROLOG_NAMESPACE"] = found.namespace
        if found.given_nats_url is not None:
            os.environ["HOROLOG_NATS_URL"] = found.given_nats_url
        status = run([*args, *arguments])
        if status:
            sys.exit(status)
