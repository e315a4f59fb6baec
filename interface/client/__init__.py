"""What a client asks, by subject: each module is one part of
:class:`horolog.interface.scheduler.Scheduler`."""
