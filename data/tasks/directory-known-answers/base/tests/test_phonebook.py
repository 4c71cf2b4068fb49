import unittest
from pathlib import Path

from phonebook import Book, Duplicate, load

HERE = Path(__file__).resolve().parent


class KnownAnswers(unittest.TestCase):
    def test_every_known_answer(self):
        book = load(HERE.parent / "data" / "people.tsv")
        wrong = []
        for line in (HERE / "known_answers.tsv").read_text(encoding="utf-8").splitlines():
            if not line.startswith("#"):
                typed, number = line.split("\t")
                if (book.find(typed) or "-") != number:
                    wrong.append(typed)
        self.assertEqual(wrong, [])


class Books(unittest.TestCase):
    def test_a_second_person_of_the_same_name(self):
        book = Book()
        book.add("Ada Lovelace", "1")
        with self.assertRaises(Duplicate):
            book.add("ADA LOVELACE", "2")
        self.assertEqual(len(book), 1)

    def test_nobody(self):
        self.assertIsNone(Book().find("Ada"))

    def test_beginnings(self):
        book = Book()
        for name in ("Ada", "Grace", "Adele"):
            book.add(name, "1")
        self.assertEqual(book.starting_with("AD"), ["Ada", "Adele"])


if __name__ == "__main__":
    unittest.main()
