"""What is true: the events of a job's life, the states they fold into, the rules that decide.

Pure: no clock, no chance, no I/O. Time and randomness come in as arguments, so a simulation and a
property test reach every rule. Path of one firing: scheduler → log → next runs → scanner (claim,
fencing token) → ready queue → worker (attempt before, outcome after) → log → projections.
"""
