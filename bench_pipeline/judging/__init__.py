"""Blind pairwise judging of scenario cells: a rubric, a live judge in both orders, tournaments.

What belongs here: pairing, blinding, verdicts, reports. What does not: making cell results
(``bench_pipeline.scenarios``; they are all that is read here) and the model client (``bench_pipeline.providers``).
"""

from bench_pipeline.judging.pairing import Folder, folder_of, load_folder, pair
from bench_pipeline.judging.report import PairVerdict, Report, judge_by_rubric

__all__ = ["Folder", "PairVerdict", "Report", "folder_of", "judge_by_rubric", "load_folder", "pair"]
