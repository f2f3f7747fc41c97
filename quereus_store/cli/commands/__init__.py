"""The subcommands of ``quereus``, one module each: ``HELP``, ``configure(parser)``, ``run(options)``."""
