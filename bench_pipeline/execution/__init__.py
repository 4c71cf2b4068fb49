"""Running cells: sandboxes, workspaces, tool adapters, what a tool left behind, its verification, the outcome.

What belongs here: everything that touches a working tree or a process of a cell. What does not: which cells
there are and whether a stored verdict can stand for one (``pipeline``), and how results are kept (``store``).
"""
