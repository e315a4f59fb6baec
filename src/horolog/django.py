"""For Django: the app (``"horolog.django.HorologConfig"``), its scheduler, and a worker."""

from horolog.interface.integrations.django.apps import HorologConfig
from horolog.interface.integrations.django.scheduling import DjangoScheduler, scheduler
from horolog.interface.integrations.django.working import DjangoWorker

__all__ = ["DjangoScheduler", "DjangoWorker", "HorologConfig", "scheduler"]
