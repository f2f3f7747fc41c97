"""What the system lets this process do with a file or folder: asked only to explain a refusal."""

from __future__ import annotations

import os
from pathlib import Path

_BY_EFFECTIVE_USER = os.access in os.supports_effective_ids


def permitted(place: str | Path, mode: int) -> bool:
    """Whether a place may be used in the ``mode`` of ``os.access``, as the user whose rights hold."""
    return os.access(place, mode, effective_ids=_BY_EFFECTIVE_USER)
