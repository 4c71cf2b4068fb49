import os
import unittest

from totals import totals

SALES = os.path.join(os.path.dirname(__file__), "sales.csv")


class Totals(unittest.TestCase):
    def test_a_row_without_an_amount_adds_nothing(self):
        self.assertEqual(totals(SALES), {"ada": 15, "bob": 0, "cy": 7})


if __name__ == "__main__":
    unittest.main()
