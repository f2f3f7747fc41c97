"""LevelDB's Python binding: ``plyvel``, or the same under the name that newer interpreters have it."""

try:
    import plyvel
except ImportError:
    import plyvel_next as plyvel

__all__ = ["plyvel"]
