"""The conformance kit: what a module has to pass to be a place for tables.

::

    from quereus_store.modules.conformance import run_module_conformance

    def make(services):
        module = MyModule()
        module.attach(services)
        return module

    def test_my_module():
        run_module_conformance(make)

A module that offers to keep maintained tables (``get_backing_host``) is put through
:func:`run_hosting_conformance` too.

:data:`CHECKS` lists the single checks for a parametrised test; every check gets a new module.
:mod:`quereus_store.modules.conformance.machine` adds a state machine that runs random operations
against a simple model (it needs Hypothesis).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from quereus_store.modules.conformance import hosting, reading, transactions, writing
from quereus_store.modules.conformance.harness import Harness, MakeModule

Check = Callable[[Harness], None]

CHECKS: Mapping[str, Check] = MappingProxyType(
    {check.__name__: check for check in (*reading.CHECKS, *writing.CHECKS, *transactions.CHECKS)}
)

HOSTING_CHECKS: Mapping[str, Check] = MappingProxyType({check.__name__: check for check in hosting.CHECKS})
"""What a module has to pass besides if maintained tables are to live in it."""


def run_check(name: str, make_module: MakeModule) -> None:
    """Run one check on a module of its own; raises AssertionError."""
    kit = Harness(make_module)
    try:
        {**CHECKS, **HOSTING_CHECKS}[name](kit)
    finally:
        kit.module.close()


def run_module_conformance(make_module: MakeModule) -> None:
    """Run all checks; ``make_module`` gets the services and returns an attached module."""
    for name in CHECKS:
        run_check(name, make_module)


def run_hosting_conformance(make_module: MakeModule) -> None:
    """Run all checks of a backing host; those of a module are asked for by themselves."""
    for name in HOSTING_CHECKS:
        run_check(name, make_module)


__all__ = [
    "CHECKS",
    "HOSTING_CHECKS",
    "Harness",
    "MakeModule",
    "run_check",
    "run_hosting_conformance",
    "run_module_conformance",
]
