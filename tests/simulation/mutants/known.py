"""The system broken in known ways, one at a time: what the simulation has to see."""

from tests.simulation.mutants.fences import FENCES
from tests.simulation.mutants.firing import FIRING
from tests.simulation.mutants.keeping import KEEPING
from tests.simulation.mutants.orders import ORDERS
from tests.simulation.mutants.publishing import PUBLISHING
from tests.simulation.mutants.retries import RETRIES
from tests.simulation.mutants.worker import WORKER

MUTANTS = (*FENCES, *PUBLISHING, *FIRING, *WORKER, *RETRIES, *ORDERS, *KEEPING)
