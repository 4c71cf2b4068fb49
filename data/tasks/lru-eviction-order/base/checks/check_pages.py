import unittest

from pagecache import Pages


class Rendering(unittest.TestCase):
    def setUp(self):
        self.rendered = []

    def render(self, name):
        self.rendered.append(name)
        return name * 10

    def test_a_page_is_rendered_once(self):
        pages = Pages(self.render)
        self.assertEqual(pages.page("a"), pages.page("a"))
        self.assertEqual(self.rendered, ["a"])

    def test_a_heavy_page_is_rendered_each_time(self):
        pages = Pages(self.render, max_weight=5)
        pages.page("a")
        pages.page("a")
        self.assertEqual(self.rendered, ["a", "a"])


if __name__ == "__main__":
    unittest.main()
