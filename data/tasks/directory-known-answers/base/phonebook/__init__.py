"""Telephone numbers by name."""

from phonebook.book import Book, Duplicate
from phonebook.loader import load

__all__ = ["Book", "Duplicate", "load"]
