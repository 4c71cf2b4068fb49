import unittest

from duration import seconds


class Durations(unittest.TestCase):
    def test_seconds(self):
        self.assertEqual(seconds("45s"), 45)

    def test_hours_and_minutes(self):
        self.assertEqual(seconds("1h30m"), 5400)

    def test_nonsense_is_refused(self):
        for text in ("", "h", "5", "1m1h", "-1s"):
            with self.assertRaises(ValueError):
                seconds(text)
