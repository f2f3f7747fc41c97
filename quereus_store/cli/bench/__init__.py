"""The benchmark: the same SQL on every storage of ours and on ``sqlite3``, side by side.

=============== ==========================================================================
``data``        the rows: the same for every engine and every run
``engines``     how each engine opens a fresh database
``cases``       the table of what is timed; a new case is one entry there
``runner``      interleaves the engines, keeps the best of several rounds, compares answers
``floor``       what the storage and the codec cost without any SQL
``memory``      peak memory of a streamed scan, in a process of its own
``report``      the table on the screen, the figures as JSON
``chart``       the bar chart as SVG
=============== ==========================================================================

A ratio is the time of ``sqlite3`` over ours: above 1 we are faster.  Memory is compared with
``sqlite3`` in memory, LMDB and LevelDB with ``sqlite3`` on a file (WAL, ``synchronous=full``).
"""
