import unittest

from till import parse
from till.render import render

PLAIN = """{"number": "7", "lines": [
    {"article": "Soap", "quantity": 2, "price": "1.50", "vat": 19},
    {"article": "Book", "quantity": "1", "price": 1234.5, "vat": "7.0"}]}"""


class Invoices(unittest.TestCase):
    def test_groups_are_sorted_by_rate(self):
        self.assertEqual([float(group.rate) for group in parse(PLAIN).groups()], [7.0, 19.0])

    def test_the_total(self):
        self.assertEqual(f"{parse(PLAIN).total:.2f}", "1324.49")

    def test_a_wrong_number_names_its_line(self):
        with self.assertRaisesRegex(ValueError, "^line 1: "):
            parse('{"number": "8", "lines": [{"article": "x", "quantity": "two", "price": 1, "vat": 7}]}')

    def test_the_printed_form(self):
        self.assertEqual(
            render(parse(PLAIN)),
            "Invoice 7\n"
            "\n"
            "Soap                                3.00\n"
            "Book                            1,234.50\n"
            "\n"
            "net at 7 %                      1,234.50\n"
            "VAT at 7 %                         86.42\n"
            "net at 19 %                         3.00\n"
            "VAT at 19 %                         0.57\n"
            "total                           1,324.49\n",
        )


if __name__ == "__main__":
    unittest.main()
