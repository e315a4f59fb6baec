"""The demonstration: jobs of every kind on real servers, watched through the log alone.

:mod:`.scenario` registers the jobs and acts on them while they run, all through the public API;
:mod:`.tally` folds the log into an account of each; :mod:`.views` shows both; :mod:`.program`
starts the processes, follows the log and judges the end.
"""
