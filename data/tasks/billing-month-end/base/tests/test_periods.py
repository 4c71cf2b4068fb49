import datetime
import unittest
from fractions import Fraction

from billing import Period, period_of, periods, share

D = datetime.date


class Periods(unittest.TestCase):
    def test_a_period_ends_where_the_next_one_starts(self):
        first, second = periods(D(2024, 3, 15), 2)
        self.assertEqual(first, Period(D(2024, 3, 15), D(2024, 4, 15)))
        self.assertEqual(second.start, first.end)

    def test_a_short_month_ends_the_period_on_its_last_day(self):
        self.assertEqual(periods(D(2023, 1, 31), 1)[0].end, D(2023, 2, 28))

    def test_the_year_turns(self):
        self.assertEqual(periods(D(2023, 12, 10), 1)[0].end, D(2024, 1, 10))

    def test_a_day_belongs_to_one_period(self):
        self.assertEqual(period_of(D(2024, 3, 15), D(2024, 4, 15)).start, D(2024, 4, 15))


class Share(unittest.TestCase):
    def test_half_of_april(self):
        april = Period(D(2024, 4, 1), D(2024, 5, 1))
        self.assertEqual(share(april, D(2024, 4, 1), D(2024, 4, 15)), Fraction(1, 2))


if __name__ == "__main__":
    unittest.main()
