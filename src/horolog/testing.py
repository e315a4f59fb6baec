"""For tests of your own jobs and projections: simulated time without a server, events to feed."""

from horolog.application.projecting.feeding import feed, happened
from horolog.interface.testing import SimulatedScheduler

__all__ = ["SimulatedScheduler", "feed", "happened"]
