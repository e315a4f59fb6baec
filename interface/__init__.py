"""Who asks: the public Scheduler and Worker, the command line, the processes, the demonstration.

The only layer that wires adapters to ports, and the only place that knows click and rich. It holds
no rules: what is refused here is refused by the domain.
"""
