import unittest

from pagecache import Cache


class Order(unittest.TestCase):
    def test_the_oldest_is_evicted(self):
        cache = Cache(2)
        for key in "abc":
            cache.put(key, key.upper())
        self.assertEqual(cache.keys(), ["b", "c"])

    def test_a_used_entry_is_kept(self):
        cache = Cache(2)
        cache.put("a", 1)
        cache.put("b", 2)
        cache.get("a")
        cache.put("c", 3)
        self.assertEqual(cache.keys(), ["a", "c"])

    def test_a_look_is_no_use(self):
        cache = Cache(2)
        cache.put("a", 1)
        cache.put("b", 2)
        self.assertEqual(cache.peek("a"), 1)
        self.assertIn("a", cache)
        cache.put("c", 3)
        self.assertEqual(cache.keys(), ["b", "c"])

    def test_too_heavy(self):
        cache = Cache(2)
        with self.assertRaises(ValueError):
            cache.put("a", 1, weight=3)
        self.assertEqual(len(cache), 0)


if __name__ == "__main__":
    unittest.main()
