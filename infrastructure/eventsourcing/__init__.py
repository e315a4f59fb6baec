"""Horolog's log seen through the ``eventsourcing`` library.

The library's event store, notification log, subscriptions, projections and tracking work on our
tables through the mapper and the recorder in here, so that whoever knows the library can follow the
log, project it exactly once, or append to it with the read models kept right.

Importing the library patches :mod:`dataclasses` for the whole process. That is a user's choice:
nothing else in Horolog imports this package, and this module itself imports nothing.
"""
