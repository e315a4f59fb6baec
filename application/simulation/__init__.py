"""Time that a test moves: the scanner's decisions and the worker's outcomes, one step at a time.

``leading`` claims what is due with the deciders of the real scanner, ``performing`` calls handlers
and finishes their runs as the real worker does, ``passing`` lets time go from one thing that is due
to the next. Nothing here sleeps, and nothing reads a clock.
"""
