import unittest

from invoice import total


class Totals(unittest.TestCase):
    def test_without_a_discount(self):
        self.assertEqual(total([(250, 2), (99, 1)]), 599)

    def test_a_discount_is_of_the_sum(self):
        self.assertEqual(total([(1000, 1), (500, 2)], discount=10), 1800)

    def test_halves_go_up(self):
        self.assertEqual(total([(45, 1)], discount=10), 41)


if __name__ == "__main__":
    unittest.main()
