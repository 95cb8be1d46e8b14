"""`python -m cygrad learn`."""

import json
import os
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

from cygrad.learn import course, running
from cygrad.learn.folder import ReaderFolder

STATES = {"new": "not begun", "missing": "no file", "syntax": "not Python", "wrong": "wrong", "error": "an exception",
          "time": "too slow", "crash": "a crash", "passed": "passed"}


def run(folders, chapter=None, every=False, reset=None, summary=False, as_json=False, seconds=20):
    """The command. Returns its exit status: 0 if all checks that were asked for have passed, else 1. Raises LearnError
    and OSError."""
    if reset is not None: return written_anew(folders, course.find(reset))
    asked = course.exercises(chapter)
    if summary: return summarized(folders, asked, as_json, seconds)
    if len(folders) > 1: raise course.LearnError("give one folder, or --summary for several")
    folder = ReaderFolder(folders[0])
    written = folder.write_missing()
    if written and not as_json: print(f"Wrote {written} exercises into {folder.path}.\n")
    found = {}
    if every or as_json: found = checked(folder, asked, seconds)
    else:
        for exercise in asked:
            if folder.has_passed(exercise): continue
            found[exercise] = running.run(folder.file(exercise), exercise, seconds)
            if not found[exercise].passed: break
    for exercise, verdict in found.items(): folder.note(exercise, verdict.passed)
    folder.save()
    failed = {exercise: verdict for exercise, verdict in found.items() if not verdict.passed}
    if as_json: print(json.dumps([record(folder, found)], indent=1))
    else:
        print_solved(found)
        print_failed(folder, failed)
        print_progress(folder)
    return int(bool(failed))


def written_anew(folders, exercise):
    if len(folders) > 1: raise course.LearnError("give one folder for --reset")
    folder = ReaderFolder(folders[0])
    old = folder.reset(exercise)
    print(f"Wrote {folder.file(exercise)} anew" + (f"; the old file is {old.name}." if old else "."))
    return 0


def checked(folder, asked, seconds):
    """{exercise: Verdict} of all, a process for each CPU."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        verdicts = pool.map(lambda e: running.run(folder.file(e), e, seconds), asked)
        return dict(zip(asked, verdicts, strict=True))


def summarized(folders, asked, as_json, seconds):
    """A line for each folder, in which nothing is written."""
    records, width = [], max(map(len, folders))
    for path in folders:
        if not os.path.isdir(path):
            records.append({"folder": path, "done": 0, "of": len(asked), "exercises": []})
            if not as_json: print(f"{path:{width}}  is not a folder")
            continue
        found = checked(folder := ReaderFolder(path), asked, seconds)
        records.append(record(folder, found))
        if not as_json: print(f"{path:{width}}  {line_of(found)}")
    if as_json: print(json.dumps(records, indent=1))
    return int(any(r["done"] < r["of"] or not r["exercises"] for r in records))


def line_of(found):
    """A folder in one line: how many have passed, and those that have not but were begun."""
    failed = [f"{e.name.partition('_')[0]} ({STATES[v.state]})" for e, v in found.items()
              if not v.passed and v.state not in ("new", "missing")]
    done = sum(v.passed for v in found.values())
    return f"{done:2} of {len(found)}" + (f"; begun: {', '.join(failed)}" if failed else "")


def record(folder, found):
    """A folder as JSON has it."""
    rows = [{"name": e.name, "chapter": e.chapter, "state": v.state, "text": "" if v.state == "new" else v.text,
             "solved": folder.solved(e)} for e, v in found.items()]
    return {"folder": str(folder.path), "done": sum(v.passed for v in found.values()), "of": len(rows),
            "exercises": rows}


# ---- what the reader sees --------------------------------------------------------------------------------------------

def mark(text, code):
    """The text in a colour, if it goes to a terminal."""
    return f"\033[{code}m{text}\033[0m" if sys.stdout.isatty() and "NO_COLOR" not in os.environ else text


def print_solved(found):
    for exercise, verdict in found.items():
        if verdict.passed: print(mark(f"{exercise.name} is right.", 32))


def print_failed(folder, failed):
    """The first exercise that fails and those after it that were begun, with their explanations."""
    for k, (exercise, verdict) in enumerate(failed.items()):
        if k and verdict.state == "new": continue
        again, solved = "", folder.solved(exercise)
        if solved is not None and verdict.state != "new": again = f", which was solved on {solved[:10]}, fails again"
        heading = f"{folder.file(exercise)} (chapter {exercise.chapter}, {course.TITLES[exercise.chapter]}){again}:"
        print(mark(heading, 1), STATES[verdict.state])
        text = filled(verdict.text, "\n\n") if verdict.state == "new" else verdict.text
        if verdict.state == "wrong": text = filled(text, "\n")
        print(textwrap.indent(text, "  "), end="\n\n")


def filled(text, between):
    """The paragraphs of a text in 98 columns, but for those with an indented line."""
    parts = text.split(between)
    return between.join(part if "\n " in f"\n{part}" else textwrap.fill(part, 98) for part in parts)


def print_progress(folder):
    """The chapters with something done, and how much that is."""
    everything = course.exercises()
    done = [e for e in everything if folder.has_passed(e)]
    print(f"Progress: {len(done)} of {len(everything)} exercises.")
    for chapter, title in course.TITLES.items():
        all_of, here = ([e for e in listed if e.chapter == chapter] for listed in (everything, done))
        if not here: continue
        names = " ".join(e.name.partition("_")[0] for e in here)
        print(f"  {chapter:2}  {title:40} {mark(f'{len(here)} of {len(all_of)}', 32)}  {names}")
    if len(done) == len(everything): print("All are done.")
