import unittest

from totals import total


class Totals(unittest.TestCase):
    def test_amounts_are_added(self):
        self.assertEqual(total([100, 250]), 350)

    def test_nothing_is_zero(self):
        self.assertEqual(total([]), 0)
