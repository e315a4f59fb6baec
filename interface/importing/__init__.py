"""From other schedulers: what they have in their files and tables, as a declared set of jobs.

Each importer reads one source and gives the jobs in the form of a file for `horolog job apply`,
with a remark for everything that means something else here, and for every entry that cannot be
imported. Nothing is run, nothing is unpickled, nothing is written but the document.
"""
