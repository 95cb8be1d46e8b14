"""Every exercise as it is given, begun, solved, and solved wrongly; every chapter has one."""

import inspect
import re
from pathlib import Path

import pytest
from learn_right import RIGHT
from learn_wrong import WRONG

from cygrad.learn import course
from cygrad.learn.checking import judge

HERE = Path(__file__).parent
EXERCISES = course.exercises()
every_exercise = pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.name)


def solution(exercise):
    return (HERE / "solutions" / exercise.file.name).read_text()


@every_exercise
def test_the_file_as_it_is_given_shows_its_task(exercise):
    assert judge(exercise.file, exercise) == ("new", exercise.task)
    assert re.match(rf".+ \(chapter {exercise.chapter}\)\.\n\n|.+\? \(chapter {exercise.chapter}\)\n\n", exercise.task)
    assert len(exercise.task.splitlines()) >= 3


@every_exercise
def test_a_file_that_was_only_touched_gets_an_explanation(exercise, tmp_path):
    """The check finds that the gap is not filled, and says so by itself, without an exception of another kind."""
    path = tmp_path / exercise.file.name
    path.write_text(exercise.file.read_text() + "\n# begun\n")
    state, text = judge(path, exercise)
    assert state == "wrong" and re.search(r"[.:)`]$", text), text


@every_exercise
def test_the_solution_passes(exercise):
    path = HERE / "solutions" / exercise.file.name
    assert judge(path, exercise) == ("passed", "")
    assert path.read_text().startswith(exercise.file.read_text().partition('"""\n')[0]), "another task"


@pytest.mark.parametrize(("name", "mistake", "old", "new", "said"), WRONG, ids=[f"{row[0]}-{row[1]}" for row in WRONG])
def test_a_wrong_answer_gets_the_message_that_helps(name, mistake, old, new, said, tmp_path):
    exercise = course.find(name)
    text = solution(exercise)
    assert text.count(old) == 1
    path = tmp_path / exercise.file.name
    path.write_text(text.replace(old, new))
    verdict = judge(path, exercise)
    assert not verdict.passed and said in verdict.text


@pytest.mark.parametrize(("name", "begins", "body"), RIGHT, ids=[row[0] for row in RIGHT])
def test_other_right_answers_pass(name, begins, body, tmp_path):
    exercise = course.find(name)
    head, found, _ = solution(exercise).partition("\n" + begins)
    path = tmp_path / exercise.file.name
    path.write_text(f"{head}\n{body}")
    assert found and judge(path, exercise) == ("passed", "")


def test_every_exercise_has_a_wrong_answer_a_check_and_a_solution():
    names = {e.name for e in EXERCISES}
    assert {row[0] for row in WRONG} == names == {p.stem for p in (HERE / "solutions").glob("*.py")}
    checks = {f"{path.stem}.{name}" for path in (course.FILES.parent / "checks").glob("ch*.py")
              for name in re.findall(r"^def (\w+)\(reader", path.read_text(), re.M)}
    assert checks == {re.sub(r"^(ch\d\d)[a-z]_", r"\1.", name) for name in names}


def test_every_chapter_has_exercises():
    """The chapters of the walkthrough that are written, and those of the course."""
    assert {e.chapter for e in EXERCISES} == {*course.TITLES} and len(EXERCISES) >= 45
    pages = sorted((HERE.parents[1] / "docs" / "walkthrough").glob("[0-9]*.md"))
    titles = dict(re.match(r"# (\d+)\. (.+)\n", page.read_text()).groups() for page in pages)
    assert {int(n): title for n, title in titles.items()}.items() <= course.TITLES.items() and len(titles) > 20


def test_the_letters_of_a_chapter_follow_each_other():
    for chapter in course.TITLES:
        letters = "".join(e.name[4] for e in course.exercises(chapter))
        assert letters and "abcdefgh".startswith(letters)
    assert [course.find(name).name for name in ("ch05a", "ch05a_exponential", "x/ch05a_exponential.py")] == \
        ["ch05a_exponential"] * 3


def test_tasks_are_filled_to_120_columns():
    """Each line is as long as it can be, but for code and lists, which are indented, and the ends of paragraphs."""
    for exercise in EXERCISES:
        lines = exercise.task.splitlines()
        assert max(map(len, lines)) <= 120
        for line, following in zip(lines, lines[1:], strict=False):
            if line and following and not line.startswith(" ") and not following.startswith(" "):
                word = re.match(r"[^\s`]*`[^`]*`\S*|\S+", following)[0]            # (code between ` is not divided)
                assert len(f"{line} {word}") > 120, f"{exercise.name}: {line}"


def test_checks_use_their_reader():
    """(A check that looks at nothing passes everything.)"""
    for exercise in EXERCISES:
        class Empty:
            def __getattr__(self, name): raise LookupError(name)

        with pytest.raises(LookupError): exercise.check(Empty())
    assert inspect.signature(EXERCISES[0].check).parameters.keys() == {"reader"}
