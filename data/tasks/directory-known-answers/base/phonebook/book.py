"""The book."""

from phonebook.keys import key


class Duplicate(ValueError):
    """A second person of the same name."""


class Book:
    """Names and numbers."""

    def __init__(self):
        self._people = {}

    def add(self, name, number):
        """Add a person."""
        if not name.strip():
            raise ValueError("a name is empty")
        if key(name) in self._people:
            raise Duplicate(f"{name} is there already")
        self._people[key(name)] = (name, number)

    def find(self, name):
        """The number of a person, None when there is nobody of that name."""
        found = self._people.get(key(name))
        return found[1] if found else None

    def starting_with(self, beginning):
        """The names that begin with some text."""
        return [name for name, _ in self._people.values() if name.lower().startswith(beginning.lower())]

    def __len__(self):
        return len(self._people)
