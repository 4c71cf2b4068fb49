import unittest

from pages import count, page


class Pages(unittest.TestCase):
    def test_full_pages_are_counted(self):
        self.assertEqual(count(20, 10), 2)

    def test_a_page_has_its_rows(self):
        self.assertEqual(page(list("abcdef"), 2, 3), ["d", "e", "f"])

    def test_page_zero_does_not_exist(self):
        with self.assertRaises(IndexError):
            page(list("abcdef"), 0, 3)
