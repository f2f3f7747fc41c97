"""The ``quereus`` command: a shell, import and export, checks, the benchmark and the demo.

Everything here stands on the public face (:func:`quereus_store.connect`) alone; one subcommand is
one module under :mod:`quereus_store.cli.commands`, and what they share (statement splitting, result
tables, error reports) is a module beside them.
"""
