import unittest

from sheetio import COMMA, SEMICOLON, TAB, FormatError, Table, read, write


class Read(unittest.TestCase):
    def test_plain_fields(self):
        self.assertEqual(read("a,b\nc,d\n"), [["a", "b"], ["c", "d"]])

    def test_an_empty_field_in_the_middle(self):
        self.assertEqual(read("a,,c\n"), [["a", "", "c"]])

    def test_carriage_returns(self):
        self.assertEqual(read("a;b\r\nc;d\r\n", SEMICOLON), [["a", "b"], ["c", "d"]])

    def test_a_quoted_delimiter_and_a_doubled_quote(self):
        self.assertEqual(read('"a,b","say ""hi"""\n'), [["a,b", 'say "hi"']])

    def test_an_empty_line_is_no_record(self):
        self.assertEqual(read("a\n\nb\n", TAB), [["a"], ["b"]])

    def test_data_after_a_closing_quote(self):
        with self.assertRaisesRegex(FormatError, "line 2"):
            read('a\n"b"c\n')


class Write(unittest.TestCase):
    def test_only_what_needs_quotes_gets_them(self):
        self.assertEqual(write([["a", "b,c", 'd"']], COMMA), 'a,"b,c","d"""\n')


class Tables(unittest.TestCase):
    def test_rows_become_dictionaries(self):
        self.assertEqual(Table.parse("x,y\n1,2\n").dictionaries(), [{"x": "1", "y": "2"}])


if __name__ == "__main__":
    unittest.main()
