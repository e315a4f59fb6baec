"""The log and its read models in memory: the same promises, no server, and a clock that is given.

It serves simulations and users' own tests. One contract suite (``tests/contracts``) runs against
this and against Postgres, so what holds here holds there.
"""
