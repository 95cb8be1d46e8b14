"""The reader's folder: the files of the exercises and the progress."""

import hashlib
import json
import os
from datetime import UTC, datetime
from pathlib import Path

from cygrad import __version__
from cygrad.learn.course import LearnError, exercises

PROGRESS = "progress.json"


class ReaderFolder:
    """A folder with exercises. What it knows of an exercise, in progress.json: `solved`, the time when it first passed;
    `passed`, the hash of the file that passed last; nothing of exercises that never passed."""

    def __init__(self, path):
        self.path = Path(path)
        self.known = {}
        if self.path.exists() and not self.path.is_dir(): raise LearnError(f"{path} is a file; give a folder")
        file = self.path / PROGRESS
        if not file.is_file(): return
        try:
            known = json.loads(file.read_text())["exercises"]
            if not all(isinstance(known[name].get(key), str | None) for name in known for key in ("solved", "passed")):
                raise TypeError
        except (ValueError, LookupError, TypeError, AttributeError):
            raise LearnError(f"{file} is not what this command has written; rename it, and the progress begins anew") \
                from None
        self.known = known

    def file(self, exercise): return self.path / f"{exercise.name}.py"

    def write_missing(self):
        """Write the exercises that are not there. Returns their number."""
        self.path.mkdir(parents=True, exist_ok=True)
        missing = [e for e in exercises() if not os.path.lexists(self.file(e))]
        for exercise in missing:
            with open(self.file(exercise), "xb") as f: f.write(exercise.file.read_bytes())
        return len(missing)

    def reset(self, exercise):
        """Write the exercise anew. Returns the path of the old file, or None if there was none."""
        self.path.mkdir(parents=True, exist_ok=True)
        file, old, n = self.file(exercise), None, 1
        if os.path.lexists(file):
            while os.path.lexists(old := file.with_suffix(f".old{n}.py")): n += 1
            file.rename(old)
        with open(file, "xb") as f: f.write(exercise.file.read_bytes())
        return old

    def stamp(self, exercise):
        """What changes when the file, the exercise or cygrad does. None: there is no file."""
        try: source = self.file(exercise).read_bytes()
        except OSError: return None
        return hashlib.sha256(b"\0".join([source, exercise.file.read_bytes(), __version__.encode()])).hexdigest()

    def has_passed(self, exercise):
        """Whether the check has passed on the file as it is now."""
        passed = self.known.get(exercise.name, {}).get("passed")
        return passed is not None and passed == self.stamp(exercise)

    def solved(self, exercise):
        """When the exercise was first solved, or None."""
        return self.known.get(exercise.name, {}).get("solved")

    def note(self, exercise, passed):
        """Keep the result of a check."""
        if not passed and exercise.name not in self.known: return
        entry = self.known.setdefault(exercise.name, {"solved": datetime.now(UTC).isoformat(timespec="seconds")})
        entry["passed"] = self.stamp(exercise) if passed else None

    def save(self):
        """Write progress.json, whole or not at all."""
        new = self.path / f"{PROGRESS}.{os.getpid()}"
        try:
            new.write_text(json.dumps({"exercises": self.known}, indent=1, sort_keys=True) + "\n")
            os.replace(new, self.path / PROGRESS)
        finally: new.unlink(missing_ok=True)
