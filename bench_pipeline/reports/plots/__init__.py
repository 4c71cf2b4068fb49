"""Pictures of numbers as inline SVG: pure functions from values to a picture, each with its text alternative.

What belongs here: scales, marks, and one module for each kind of plot. What does not: which numbers are shown and what
they are called (``reports.sections``), colours (the style of the page: marks carry classes). No meaning is carried by a
colour alone: what differs by colour differs by shape, dash or text as well.
"""
