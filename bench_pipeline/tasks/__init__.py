"""Repository tasks: load, check, harvest from a commit, and the Git and patch work that this needs.

What belongs here: the task document and its folder, base trees out of repositories, patches, validation
fingerprints, leak checks. What does not: running anything of a task (``execution``), and which cells exist
(``evaluations``).
"""
