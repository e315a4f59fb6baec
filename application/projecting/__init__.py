"""Projections of users: their own tables, filled from the log, each event exactly once.

    log ──▶ Follower ──▶ Projection.apply(event, view) ═══▶ the user's tables, and how far it came
                                                            (one transaction)

The place in the log moves in the transaction of what was written, so a crash between two events, or
an answer that got lost, neither repeats nor leaves out one. One runner at a time holds a lock;
others stand by and take over.
"""
