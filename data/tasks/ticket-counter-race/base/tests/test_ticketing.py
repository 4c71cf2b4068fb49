import tempfile
import unittest
from pathlib import Path

from ticketing import Busy, Counter, Damaged, Desk, FileLock


class Ticketing(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_numbers_go_up(self):
        counter = Counter(self.folder / "c")
        self.assertEqual([counter.take(), counter.take()], [1, 2])
        self.assertEqual(counter.take_many(3), [3, 4, 5])
        self.assertEqual(Counter(self.folder / "c").last, 5)

    def test_prefixes_do_not_share_numbers(self):
        self.assertEqual(Desk(self.folder, "A").ticket(), "A-0001")
        self.assertEqual(Desk(self.folder, "B").ticket(), "B-0001")

    def test_a_held_lock_makes_others_busy(self):
        pauses = []
        with FileLock(self.folder / "c.lock"):
            with self.assertRaises(Busy):
                Counter(self.folder / "c", patience=0.05, pause=pauses.append).take()
        self.assertTrue(pauses)

    def test_a_damaged_file_is_not_overwritten(self):
        (self.folder / "c").write_text("")
        with self.assertRaises(Damaged):
            Counter(self.folder / "c").take()
        self.assertEqual((self.folder / "c").read_text(), "")


if __name__ == "__main__":
    unittest.main()
