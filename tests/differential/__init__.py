"""Differential tests: the same statements asked in different ways must have the same answers."""
