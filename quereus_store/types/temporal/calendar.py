"""The calendar: days as integers, for every year that has a spelling.

``datetime.date`` ends at the years 1 and 9999; dates here reach from -271821 to 275760.  So a date is a day
number (0 is 1970-01-01, Gregorian in both directions) and these functions go between it and year, month, day.
The algorithm counts from a March 1st in eras of 400 years, so that the leap day is the last of its year.
"""

from __future__ import annotations

from functools import lru_cache

MIN_DAY = -100_000_001
MAX_DAY = 100_000_000
DAY_NANOSECONDS = 86_400 * 10**9

_MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def is_leap_year(year: int) -> bool:
    """Whether a year has a February 29th."""
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def days_in_month(year: int, month: int) -> int:
    """28 to 31."""
    return 29 if month == 2 and is_leap_year(year) else _MONTH_DAYS[month - 1]


def day_number(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01."""
    if month <= 2:
        year -= 1
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * 146_097 + day_of_era - 719_468


@lru_cache(4096)
def civil_date(day: int) -> tuple[int, int, int]:
    """Year, month and day of the month of a day number."""
    era, day_of_era = divmod(day + 719_468, 146_097)
    year_of_era = (day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * day_of_year + 2) // 153
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    year = year_of_era + era * 400 + (month <= 2)
    return year, month, day_of_year - (153 * shifted_month + 2) // 5 + 1


def add_months(day: int, months: int) -> int:
    """Move a day number by months; a day that the target month lacks becomes its last."""
    year, month, day_of_month = civil_date(day)
    years, month_index = divmod(month - 1 + months, 12)
    year += years
    return day_number(year, month_index + 1, min(day_of_month, days_in_month(year, month_index + 1)))


def weekday(day: int) -> int:
    """Day of the week, 0 = Sunday ... 6 = Saturday."""
    return (day + 4) % 7


def day_of_year(day: int) -> int:
    """1 to 366."""
    year, _, _ = civil_date(day)
    return day - day_number(year, 1, 1) + 1


def iso_week(day: int) -> tuple[int, int]:
    """ISO year and week (1 to 53): the week belongs to the year of its Thursday."""
    thursday = day - (day + 3) % 7 + 3
    year, _, _ = civil_date(thursday)
    return year, (thursday - day_number(year, 1, 1)) // 7 + 1
