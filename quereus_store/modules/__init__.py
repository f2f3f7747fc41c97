"""Modules: where tables live.

``contract`` is what the engine asks of a module, ``access`` the planner that most modules use,
``memory`` the built-in module, ``conformance`` the tests that a module has to pass.
"""
