"""Results put into words.

What belongs here: turning rows of result tables into texts, each number with its denominator. What does not:
computing them (``statistics``, ``pipeline``) and printing them (``cli``).
"""
