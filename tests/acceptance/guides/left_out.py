"""What the guides show and nobody runs here, with the reason."""

from tests.acceptance.shown import Shown

NOT_RUN = {
    "pip install": "would change what is installed here; make package-check installs the wheel",
    "useradd": "would add a user to this machine",
    "python3 -m venv /opt/horolog": "writes to /opt; make package-check installs the wheel",
    "install -": "writes to /etc and /opt",
    "systemctl": "needs systemd; tests/deploy holds the units against the program",
    "crontab -r": "would remove somebody's crontab",
    "horolog scanner --set stream_replicas=3": "needs three NATS servers",
    "horolog web --host 0.0.0.0": "every address; tests/interface/web/test_protection.py",
    "horolog import celery-beat postgresql://": "tests/interface/importing/test_celery_beat.py",
    "python manage.py dumpdata": "needs django-celery-beat; the guide's test has such a dump",
    "python manage.py horolog": "tests/examples/test_frameworks.py, on examples/django_shop.py",
    "python examples/": "tests/examples runs them",
    "horolog projection rebuild --skip": "tests/interface/test_projections.py breaks an event",
    "python bench/": "takes minutes to hours, and a quiet machine",
}
"""By how it begins. Beside it: a process that the prose only names (`horolog dev` has it by itself)
is not started."""


def reason(one: Shown) -> str | None:
    """Why nobody runs it."""
    return next((why for start, why in NOT_RUN.items() if one.line.startswith(start)), None)
