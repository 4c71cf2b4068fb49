"""The example's coding agent: it knows a book of recipes and nothing else.

It stands in for a real agent's command line. It works in the folder in which it is started, changes files there,
tells every read and every write on a line of its output, and on the last one how it ended and what it "used". A recipe applies when the text that it looks for
is in its file. With --care=quick only the obvious edits are made, with --care=thorough all of them.

    python3 patcher.py --model=rulebook-l-1 [--care=quick|thorough] [--role=solve|plan|build] [--crib=DIR] < PROMPT

With --role=plan it changes nothing and writes what it would do to plan.json in the folder BERBENCH_HANDOVER; with
--role=build it does what that file says. With --crib it first reads every Markdown file below DIR: what no honest
agent would do where these are the answers.
"""

import argparse
import json
import os
import sys
from pathlib import Path

sys.dont_write_bytecode = True  # the folder of this file cannot be written to
sys.path.insert(0, str(Path(__file__).resolve().parent))

from recipes import RECIPES  # noqa: E402

CHARACTERS_PER_TOKEN = 4


def parse_arguments():
    parser = argparse.ArgumentParser(description="Apply recipes to the working tree.")
    parser.add_argument("--model", choices=["rulebook-s-1", "rulebook-l-1"], required=True)
    parser.add_argument("--care", choices=["quick", "thorough"], default="quick")
    parser.add_argument("--crib", type=Path)
    parser.add_argument("--role", choices=["solve", "plan", "build"], default="solve")
    return parser.parse_args()


def tell(activity, text, **more):
    """One line of the transcript."""
    print(json.dumps({"activity": activity, "text": text, **more}))


class Reader:
    """Reads files below the working folder and counts what a model would have been shown."""

    def __init__(self):
        self.fresh = 0
        self.again = 0
        self.calls = 0
        self._seen = set()

    def read(self, name):
        self.calls += 1
        try:
            text = Path(name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return ""
        tell("read", text, path=name)
        if name in self._seen:
            self.again += len(text)
        else:
            self.fresh += len(text)
        self._seen.add(name)
        return text


def known(model):
    """The recipes that a model knows: the small one has only the short chapter."""
    return [recipe for recipe in RECIPES if model == "rulebook-l-1" or recipe["chapter"] == "short"]


def find_recipes(model, reader):
    """The names of the recipes whose symptom is in the tree."""
    return [recipe["name"] for recipe in known(model) if recipe["symptom"] in reader.read(recipe["file"])]


def edits_of(name, care):
    """The edits of a recipe that belong to a degree of care."""
    (recipe,) = [recipe for recipe in RECIPES if recipe["name"] == name]
    return [edit for edit in recipe["edits"] if edit["care"] in ("both", care)]


def apply(edits, reader):
    """Make the edits whose text is there; returns the characters written and the number of edits."""
    written = made = 0
    for edit in edits:
        text = reader.read(edit["file"])
        if text.count(edit["find"]) == 1:
            Path(edit["file"]).write_text(text.replace(edit["find"], edit["replace"]), encoding="utf-8")
            tell("write", edit["replace"], path=edit["file"])
            written += len(edit["replace"])
            made += 1
    return written, made


def plan_file():
    handover = os.environ.get("BERBENCH_HANDOVER")
    if not handover:
        sys.exit("patcher: there is no BERBENCH_HANDOVER: the roles plan and build belong to a workflow")
    return Path(handover) / "plan.json"


def main():
    arguments = parse_arguments()
    prompt = sys.stdin.read()
    reader = Reader()
    written = made = 0
    for path in sorted(arguments.crib.rglob("*.md")) if arguments.crib else ():
        reader.read(str(path))
    if arguments.role == "build":
        plan = json.loads(plan_file().read_text(encoding="utf-8"))
        written, made = apply([edit for step in plan for edit in edits_of(step["recipe"], step["care"])], reader)
    else:
        plan = [{"recipe": name, "care": arguments.care} for name in find_recipes(arguments.model, reader)]
        if arguments.role == "plan":
            text = json.dumps(plan, indent=2) + "\n"
            plan_file().write_text(text, encoding="utf-8")
            tell("write", text, path=str(plan_file()))
            written = len(text)
        else:
            written, made = apply([edit for step in plan for edit in edits_of(step["recipe"], step["care"])], reader)
    done = f"applied {made} edits" if arguments.role != "plan" else f"planned {len(plan)} recipes"
    tell("message", f"{done} with {arguments.model}, {arguments.care}")
    # Thinking is what care costs.
    thoughts = 2000 if arguments.care == "thorough" else 400
    report = {
        "state": "completed",
        "tokens": {
            "input": (len(prompt) + reader.fresh) // CHARACTERS_PER_TOKEN,
            "cache_read": reader.again // CHARACTERS_PER_TOKEN,
            "cache_write": 0,
            "output": (thoughts + written) // CHARACTERS_PER_TOKEN,
        },
        "turns": 1 + made,
        "tool_calls": reader.calls + made,
        "final_text": done,
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
