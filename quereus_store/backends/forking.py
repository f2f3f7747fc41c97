"""What happens to open databases when the process forks.

Storage libraries must not be used on both sides of a fork, not even to clean up.  A backend that is *watched*
is told before a fork, when it may still put itself in order, and in the child after it.  What the child must
never release it *abandons*.  A file that is open in the parent and cannot be opened in the child is *left*.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from typing import Any, Protocol


class Watched(Protocol):
    """A backend that is told of forks."""

    def before_fork(self) -> None:
        """The process is about to fork."""
        ...

    def after_fork_in_child(self) -> None:
        """This is the child of a fork."""
        ...


# Hooks cannot be taken back, so one pair of them serves every backend that is open.
_WATCHED: weakref.WeakSet[Any] = weakref.WeakSet()

# The storage library remembers such files for as long as the process lives, so this has to as well.
_LEFT: set[str] = set()


def leave(path: str) -> None:
    """Note a file that a fork has left to the parent."""
    _LEFT.add(os.path.realpath(path))


def is_left(path: str) -> bool:
    """Whether a fork of this process, or of one before it, has left the file to the parent."""
    return os.path.realpath(path) in _LEFT


def watch(backend: Watched) -> None:
    """Tell a backend of forks for as long as it lives."""
    _WATCHED.add(backend)


def abandon(thing: object) -> None:
    """Keep an object from ever being cleaned up in this process."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def _before_fork() -> None:
    for backend in list(_WATCHED):
        backend.before_fork()


def _after_fork_in_child() -> None:
    for backend in list(_WATCHED):
        backend.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork_in_child)
