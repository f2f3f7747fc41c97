"""Time: dates, times and durations as canonical text, with nanoseconds and the far years.

==============  ======================================================================================
module          holds
==============  ======================================================================================
``calendar``    days as integers: year, month, day; months; weeks
``duration``    ``Duration``: ISO text, phrases, whole length (the key of a TIMESPAN)
``instant``     reading and writing DATE, TIME, DATETIME text; the check of a whole column
``arithmetic``  the table of ``+ - * /`` over dates, times and durations
``distances``   moments as integers, and these moved: RANGE frames of windows
``modifiers``   ``date(t, '+1 month')`` and kin, ``julianday``, ``epoch_s``; the clock
``strftime``    ``strftime(format, t, ...)``
``accessors``   ``timespan_hours(x)``, ``timespan_total_days(x)``, ``IsISODate(x)``
==============  ======================================================================================
"""
