"""Window functions: what they are, and how they run over a partition.

The caller sorts a partition's rows, works out who is whose peer (:func:`peers_of`) and which rows each row's
frame holds (:func:`frames_of`), and gives whole columns of arguments; it gets a whole column of results.

========================  ==========================================================================
:data:`WINDOW_FUNCTIONS`  ``rank``, ``lag``, ``first_value`` ...: what only OVER can ask for
:func:`aggregate_over`    any aggregate, over each row's frame
========================  ==========================================================================

Nothing here looks at a row more often than its frame moves: frames slide in one direction only.
"""

from quereus_store.functions.windows.aggregation import aggregate_over
from quereus_store.functions.windows.declarations import (
    WINDOW_FUNCTIONS,
    Partition,
    WindowFunction,
    check_window_call,
)
from quereus_store.functions.windows.frames import (
    Frames,
    FrameSpecification,
    Peers,
    frame_offset,
    frames_of,
    peers_of,
)

__all__ = [
    "WINDOW_FUNCTIONS",
    "FrameSpecification",
    "Frames",
    "Partition",
    "Peers",
    "WindowFunction",
    "aggregate_over",
    "check_window_call",
    "frame_offset",
    "frames_of",
    "peers_of",
]
