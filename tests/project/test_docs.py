"""The documents are correct. In README, CONTRIBUTING, CHANGELOG, docs/ and examples/:

- blocks of Python run in order, in one process for each document; output after `>>>`, and in a block of text directly
  after a block of Python, is the real output;
- a block below `<!-- path -->` is part of that file, word for word (with any indentation);
- a block below `<!-- jax -->`, or another of the packages in PEERS, runs where that is installed;
- a diff applies to the current files;
- commands name existing targets of the Makefile, and links have targets.

`python tests/project/test_docs.py FILE` runs the Python of one document, for writers."""

import contextlib
import doctest
import importlib.util
import inspect
import io
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import cygrad as cg

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *(p for d in ("docs", "examples") for p in sorted((ROOT / d).rglob("*.md")))]
CHAPTERS = sorted((ROOT / "docs" / "walkthrough").glob("[0-9]*.md"))

BLOCK = re.compile(r"(?:^<!-- (?P<path>\S+) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.M | re.S)
COMMAND = r"(?:^|`)make ([\w-]+)"
LINK = r"\]\(([^)#\s]+)[^)]*\)"
PEERS = {"autograd", "jax"}
LANGUAGES = {"python", "text", "cython", "c", "diff", "sh"}


def blocks(document):
    """The fenced blocks of a document: (line, language, path of the excerpt or None, text, directly after the last)."""
    whole = document.read_text()
    end = 0
    for m in BLOCK.finditer(whole):
        line = whole.count("\n", 0, m.start("text")) + 1
        yield line, m["language"], m["path"], m["text"], whole[end:m.start()].strip() == ""
        end = m.end()
    assert len(re.findall(r"^```", whole, re.M)) % 2 == 0, f"{document}: a block is not closed"


def name(document):
    return str(document.relative_to(ROOT)) if document.is_relative_to(ROOT) else document.name


def every_document_with(pattern):
    """A test for each document that contains `pattern`. There must be at least one."""
    found = [d for d in DOCUMENTS if re.search(pattern, d.read_text(), re.M)]
    assert found, f"no document has {pattern}"
    return pytest.mark.parametrize("document", found, ids=name)


# ---- Python ----------------------------------------------------------------------------------------------------------

def run(document):
    """Run the Python of a document in this process. Returns a list of errors."""
    wrong = []
    names = {"__name__": "document"}
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.FAIL_FAST)
    printed = None
    for line, language, path, text, follows in blocks(document):
        where = f"{name(document)}:{line}"
        if language == "text" and follows and printed is not None and printed != text:
            wrong.append(f"{where}: the output is\n{printed}")
        printed = None
        if language != "python" or path in PEERS and not importlib.util.find_spec(path): continue
        if ">>>" in text:
            test = doctest.DocTest(parser.get_examples(text), {}, where, str(document), line - 1, None)
            test.globs = names
            out = io.StringIO()
            if runner.run(test, out=out.write, clear_globs=False).failed: wrong.append(out.getvalue())
            continue
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile("\n" * (line - 1) + text, document, "exec"), names)
        printed = out.getvalue()
    return wrong


def test_everything_is_checked():
    for document in DOCUMENTS:
        for line, language, path, _, _ in blocks(document):
            assert language in LANGUAGES, f"{name(document)}:{line}: a block of {language or 'no language'}"
            assert language not in ("cython", "c") or path, f"{name(document)}:{line}: from which file?"
    assert {d.name for d in DOCUMENTS} >= {"README.md", "CONTRIBUTING.md", "CHANGELOG.md"} and len(CHAPTERS) >= 3
    for chapter in CHAPTERS:
        kinds = [(language, path) for _, language, path, _, _ in blocks(chapter)]
        assert ("python", None) in kinds and any(path for _, path in kinds), f"{name(chapter)} shows no code or no file"


@every_document_with(r"^```python$")
def test_python_runs(document):
    pattern = r"^(?:>>> )?(?:import|from) (torch|safetensors|mpi4py|IPython)\b"
    for package in set(re.findall(pattern, document.read_text(), re.M)):
        pytest.importorskip(package)
    result = subprocess.run([sys.executable, "-W", "error", __file__, document], text=True, capture_output=True,
                            timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr


class Library(dict):
    """The arrays of the first table of "From PyTorch", as tensors of a library, and its functions, by bare names."""

    def __init__(self, *modules, **more):
        self.modules, lib = modules, modules[0]
        arrays = {"x": [[1.0, 5.0], [4.0, 3.0]], "y": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "i": [2, 0, 2],
                  "u": np.array([200, 100], "uint8"), "c": np.arange(8, dtype="float32").reshape(2, 2, 2),
                  "d": np.array(0.5)}
        super().__init__(more, p=lib.tensor([1.0, 2.0], requires_grad=True), lib=lib,
                         **{name: lib.tensor(a) for name, a in arrays.items()})
        with cg.record(): self["s"] = (self["p"] * self["p"]).sum()

    def __missing__(self, name):
        for module in self.modules:
            if hasattr(module, name): return getattr(module, name)
        raise KeyError(name)

    def shown(self, line):
        """What the line gives, as the table shows it: numbers with two digits, and unusual dtypes."""
        def text(value):
            if callable(value): return "a method"
            if isinstance(value, tuple) and not all(isinstance(v, int) for v in value):
                return "(" + ", ".join(map(text, value)) + ")"
            if not hasattr(value, "tolist"): return str(value)
            kind = str(value.dtype).removeprefix("torch.")
            numbers = value.tolist() if kind == "bool" else np.round(value.tolist(), 2).tolist()
            usual = kind in ("float32", "int64", "bool") and not (kind == "float32" and "one_hot" in line)
            return str(numbers) if usual else f"{numbers} {kind}"

        return text(eval(line, {}, self))


@pytest.mark.filterwarnings("ignore:torch.meshgrid", "ignore:Implicit dimension choice")
def test_lines_that_give_another_result_than_in_pytorch():
    torch = pytest.importorskip("torch")
    text = (ROOT / "docs" / "from-pytorch.md").read_text()
    table = text.partition("\n## ")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(.+)` \| `(.+)` \| `(.+)` \| `(.+)` \|$", table, re.M)
    theirs = Library(torch, torch.autograd, torch.nn.functional, torch.nn)
    for line, given, ours, write in rows:
        mine, again = (Library(cg, cg.autograd, cg.nn) for _ in range(2))
        assert (theirs.shown(line), mine.shown(line)) == (given, ours) and given != ours, line
        if given != "a method": assert again.shown(write) == given, write
    assert len(rows) > 15 and table.count("\n| `") == len(rows)


# ---- excerpts, diffs, commands, links --------------------------------------------------------------------------------

def stands_in(text, path):
    """Whether `text` consists of consecutive whole lines of the file, with any indentation."""
    if not (ROOT / path).is_file(): return False
    whole = "\n" + (ROOT / path).read_text()
    return any("\n" + textwrap.indent(text, " " * n) in whole for n in range(0, 17, 4))


def hunks(diff):
    """(path, lines before, lines after) of every hunk of a diff block."""
    path, before, after = None, [], []
    for line in [*diff.splitlines(), "@@"]:
        if line.startswith("+++ "): continue
        if line.startswith(("--- ", "@@")):
            if before or after: yield path, before, after
            before, after = [], []
            if line.startswith("--- "): path = line.removeprefix("--- ").removeprefix("a/")
            continue
        if not line.startswith("+"): before.append(line[1:])
        if not line.startswith("-"): after.append(line[1:])


def apply(diff, root):
    """Apply a diff block below `root`; raises ValueError for a hunk that does not fit in one place exactly."""
    for path, before, after in hunks(diff):
        file = root / path
        whole = "\n" + file.read_text()
        old, new = ("\n" + "\n".join(lines) + "\n" for lines in (before, after))
        if not before or whole.count(old) != 1:
            raise ValueError(f"{path} has {whole.count(old)} places for the hunk\n" + "\n".join(before))
        file.write_text(whole.replace(old, new)[1:])


@every_document_with(r"^<!-- \S+ -->\n```")
def test_excerpts(document):
    for line, _, path, text, _ in blocks(document):
        assert path is None or path in PEERS or stands_in(text, path), f"{name(document)}:{line}: this is not in {path}"


@every_document_with(r"^```diff$")
def test_diffs_apply(document, tmp_path):
    diffs = [text for _, language, _, text, _ in blocks(document) if language == "diff"]
    for path in {path for text in diffs for path, _, _ in hunks(text)}:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text((ROOT / path).read_text())
    for text in diffs: apply(text, tmp_path)


@every_document_with(COMMAND)
def test_commands(document):
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M))
    prose = document.read_text()
    for target in re.findall(COMMAND, prose, re.M):
        assert target in targets, f"{name(document)}: make {target}"


def test_the_steps_of_chapter_21_are_those_measured():
    measured = ROOT.joinpath("benchmarks", "results", "steps.md").read_text()
    assert re.match(r"\| float32, \S.* \| ns per element \|\n", measured) and len(measured.splitlines()) > 10
    (chapter,) = [page for page in CHAPTERS if page.name.startswith("21-")]
    assert f"\n\n{measured}\n" in chapter.read_text(), "copy benchmarks/results/steps.md into chapter 21"


def test_the_ratios_of_chapter_27_are_those_measured():
    measured = ROOT.joinpath("benchmarks", "results", "nets.md").read_text().partition("\n\n")[0]
    assert measured.startswith("| time of a step / eager cygrad, ") and len(measured.splitlines()) > 5
    (chapter,) = [page for page in CHAPTERS if page.name.startswith("27-")]
    assert f"\n\n{measured}\n\n" in chapter.read_text(), "copy the first table of benchmarks/results/nets.md"


def test_the_instructions_of_chapter_27_are_those_measured():
    measured = ROOT.joinpath("benchmarks", "results", "instructions.md").read_text()
    assert measured.startswith("| instructions of an operation | ") and len(measured.splitlines()) > 5
    (chapter,) = [page for page in CHAPTERS if page.name.startswith("27-")]
    assert f"\n\n{measured}\n" in chapter.read_text(), "copy benchmarks/results/instructions.md into chapter 27"


def test_alpha_and_beta_of_chapter_29_are_those_measured():
    measured = ROOT.joinpath("benchmarks", "results", "ranks.md").read_text()
    ((alpha, speed),) = re.findall(r"alpha = ([\d.]+) us and 1 / beta = ([\d,]+) MB/s", measured)
    (chapter,) = [page for page in CHAPTERS if page.name.startswith("29-")]
    assert f">>> alpha, beta = {alpha}e-6, 1 / {speed.replace(',', '')}e6\n" in chapter.read_text()


@pytest.mark.parametrize("folder", ["walkthrough", "decisions"])
def test_an_index_lists_every_page_by_number_and_title(folder):
    """`make pages` writes the lists."""
    index = ROOT / "docs" / folder / "README.md"
    lines = re.findall(r"^(\d+)\. \[(.+)\]\((\S+)\)\\?$", index.read_text(), re.M)
    paths = sorted(index.parent.glob("*.md"))
    assert [index.parent / link for _, _, link in lines] + [index] == paths and len(paths) > 15
    for (number, shown, _), path in zip(lines, paths, strict=False):
        assert re.match(rf"# 0*{number}\.? {re.escape(shown)}\n", path.read_text()), f"{index}: {number}. {shown}"


def test_the_lists_of_pages_follow_their_titles(tmp_path, monkeypatch):
    """tools/make_docs.py finds a chapter that was added and a title that changed."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    make_docs = importlib.import_module("make_docs")
    folder = shutil.copytree(ROOT / "docs" / "walkthrough", tmp_path / "walkthrough")
    index = folder / "README.md"
    found = make_docs.lists(ROOT / "docs")
    assert found.keys() == {ROOT / "docs" / name / "README.md" for name in ("walkthrough", "decisions")} | {*CHAPTERS}
    assert all(page.read_text() == text for page, text in found.items())
    folder.joinpath("99-more.md").write_text("# 99. More\n")
    replay = folder / "27-replay.md"
    replay.write_text(replay.read_text().replace("# 27. Replay", "# 15. Other words", 1))
    found = make_docs.lists(tmp_path)
    text = found[index]
    assert "\n99. [More](99-more.md)\n" in text and "\n15. [Other words](27-replay.md)\\\n" in text
    assert "Next: [Other words](27-replay.md).\n" in found[folder / "26-how-a-memory-plan-is-made.md"]
    assert folder / "99-more.md" not in found           # (it has no part)


def test_a_chapter_says_what_it_needs_and_teaches(monkeypatch):
    """Its part, the chapters that it needs, its minutes, what one can do after it. Parts follow each other in order."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    make_docs = importlib.import_module("make_docs")
    parts = []
    for number, chapter in enumerate(CHAPTERS, 1):
        assert chapter.name.startswith(f"{number:02}-")
        part, needs, minutes, can = make_docs.head(chapter.read_text())
        for shown, link in re.findall(r"\[chapter (\d+)\]\((\S+)\)", needs):
            assert int(shown) < number and CHAPTERS[int(shown) - 1].name == link, f"{chapter.name} needs {shown}"
        assert 10 <= int(minutes) <= 60 and len(can) > 40
        if not parts or parts[-1] != part: parts.append(part)
    assert parts == ["Start", "Ideas", "Memory", "Speed", "Compiling"]


@pytest.mark.parametrize("chapter", CHAPTERS, ids=name)
def test_a_chapter_has_a_figure_a_summary_and_graded_exercises(chapter):
    """A figure that reacts, one summary before the exercises, and exercises from easy to hard with hidden answers."""
    text = chapter.read_text()
    figures = re.findall(r'^<iframe src="(\S+)" title="[^"]+"', text, re.M)
    assert figures and all(f"]({figure})" in text for figure in figures)
    assert re.findall("^## (Summary|Exercises)$", text, re.M) == ["Summary", "Exercises"]
    exercises = text.partition("\n## Exercises\n")[2]
    grades = re.findall(r"^(\d+)\. \*\((\w+)\)\* ", exercises, re.M)
    order = [("easy", "medium", "hard").index(grade) for _, grade in grades]
    assert [int(number) for number, _ in grades] == [*range(1, len(grades) + 1)] and len(grades) >= 4
    assert order == sorted(order) and order[0] == 0 and exercises.count("<summary>Answer</summary>") == len(grades)


def test_the_site_lists_every_page():
    """index.md has each page in a table of contents, or a page that it has does. (Sphinx warns of others.)"""
    docs, found = ROOT / "docs", {ROOT / "docs" / "index.md"}
    for page in (docs / "index.md", docs / "decisions" / "README.md", *docs.glob("api.md")):
        text = page.read_text()
        tables = re.findall(r"^:::\{toctree\}\n(.*?)^:::$|^<!-- toctree: (.+) -->$", text, re.M | re.S)
        for entry in " ".join(a + b for a, b in tables).split(): found.update(page.parent.glob(f"{entry}.md"))
    assert found == {*docs.rglob("*.md")}


def test_the_change_log_begins_with_ten_highlights():
    """A release has a numbered list of ten at first, then lists of changes without numbers."""
    newest = re.search(r"^## \d.*?(?=^## )", (ROOT / "CHANGELOG.md").read_text(), re.M | re.S)[0]
    numbered, plain = (list(re.finditer(mark, newest, re.M)) for mark in (r"^(\d+)\. ", r"^- "))
    assert [int(m[1]) for m in numbered] == [*range(1, 11)] and plain[0].start() > numbered[-1].start()


def test_readme_is_short():
    """At most 900 words: what white space separates, outside of fenced blocks. Cells of tables, links and marks such as
    `-` and `|` count too."""
    assert len(BLOCK.sub("", (ROOT / "README.md").read_text()).split()) <= 900


def test_the_numbers_of_the_overview_are_those_of_the_tests():
    """Operators, layers and modules that are compared with PyTorch, and solvers. README has some of them too."""
    def compared(name): return (ROOT / "tests" / "support" / f"{name}.txt").read_text().splitlines()

    readme, text = (" ".join((ROOT / page).read_text().split()) for page in ("README.md", "docs/overview.md"))
    rows = {line.split()[0] for line in compared("opinfo")}
    assert f"{len(rows)} rows of the operator table have a counterpart in PyTorch" in text
    assert f"{len(compared('layers'))} layers of `cg.nn` are compared with PyTorch's" in text
    assert f"the functions that compute {len(compared('modules'))} modules of `torch.nn`" in text
    solvers = {cls for cls in vars(cg.optim).values() if inspect.isclass(cls) and issubclass(cls, cg.optim.Solver)}
    number = {17: "seventeen", 18: "eighteen", 19: "nineteen"}[len(solvers) - 1]             # (without the base)
    assert f"{number} solvers" in text and f"{number} solvers" in readme
    assert len(cg.ops.TABLE) > 200 and "more than two hundred operators" in readme
    assert len(compared("layers")) > 100 and "more than a hundred layers and losses" in readme


def test_step_2_of_an_operator_is_inside_of_the_function_that_it_names():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    step, diff = re.search(r"^\*\*2\. (Their names.*?)```diff\n(.*?)^```$", text, re.M | re.S).groups()
    (path, before, after), = hunks(diff)
    function = re.search(r"`(\w+)\(\)`", step)[1]
    body = re.search(rf"^cdef \w+ {function}\(.*?(?=^\S)", (ROOT / path).read_text(), re.M | re.S)[0]
    assert "\n".join(before) in body


def test_figures_are_drawn_by_their_code(tmp_path):
    subprocess.run([sys.executable, ROOT / "docs" / "figures", tmp_path], check=True)
    drawn = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    pattern = re.compile(r'!\[[^]]*\]\((\S+\.svg)\)|<iframe src="(\S+)"')
    shown = {Path(link[1] or link[2]).name for chapter in CHAPTERS for link in pattern.finditer(chapter.read_text())}
    assert shown == {*drawn}
    for name, content in drawn.items():
        assert ROOT.joinpath("docs", "_static", name).read_bytes() == content, f"{name}: run python docs/figures"


@every_document_with(LINK)
def test_links(document):
    for link in re.findall(LINK, document.read_text()):
        there = link.startswith("https://") or (document.parent / link).exists()
        assert there, f"{name(document)}: {link} is not there"


def diffs_of(*titles):
    """The diffs of the sections of CONTRIBUTING with these titles."""
    page = (ROOT / "CONTRIBUTING.md").read_text().splitlines()
    found = [(next((row[3:] for row in reversed(page[:line]) if row.startswith("## ")), None), text)
             for line, language, _, text, _ in blocks(ROOT / "CONTRIBUTING.md") if language == "diff"]
    assert {*titles} <= {title for title, _ in found}
    return [text for title, text in found if title in titles]


def built_and_tested(tmp_path, diffs, *tests, **switches):
    """How many of these tests pass on a copy with these diffs."""
    pytest.importorskip("Cython")
    scratch = tmp_path / "cygrad"
    left_out = shutil.ignore_patterns(".git", ".venv", "out", "dist", "__pycache__", *["_*.so"] * bool(switches))
    shutil.copytree(ROOT, scratch, symlinks=True, ignore=left_out)
    for text in diffs: apply(text, scratch)
    environment = os.environ | {"PYTHONPATH": str(scratch)} | switches
    for command in (["setup.py", "--quiet", "build_ext", "--inplace"],
                    ["-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]):
        result = subprocess.run([sys.executable, *command], cwd=scratch, env=environment, text=True,
                                capture_output=True)
        assert result.returncode == 0, result.stdout + result.stderr
    return int(re.search(r"(\d+) passed", result.stdout)[1])


@pytest.mark.slow
def test_recipe(tmp_path):
    """The operator and the solver that CONTRIBUTING adds build, and pass the tests of the table and of solvers."""
    diffs = diffs_of("Add an operator in five steps", "Add a solver in five steps")
    passed = built_and_tested(tmp_path, diffs, "tests/ops/test_table.py", "tests/optim", "-k", "isru or signum")
    assert passed > 75                              # 55 of the solver


@pytest.mark.slow
def test_recipe_of_a_dtype(tmp_path):
    """The dtype that CONTRIBUTING adds in three files builds, and passes the tests of dtypes. Every module is compiled:
    for one instruction level, without optimization."""
    diffs = diffs_of("Add a dtype in three steps")
    assert len({path for text in diffs for path, _, _ in hunks(text)}) == 3
    passed = built_and_tested(tmp_path, diffs, "tests/core/test_dtypes.py", CYGRAD_QUICK="1", CYGRAD_LEVELS="native")
    assert passed > 150


# ---- the checks can fail ---------------------------------------------------------------------------------------------

def test_checks_can_fail(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\n>>> 1 + 1\n3\n```\n\n```python\nprint(4)\n```\n\n```text\n5\n```\n")
    wrong = run(page)
    assert len(wrong) == 2 and "Expected:\n    3" in wrong[0] and wrong[1] == "page.md:11: the output is\n4\n"
    result = subprocess.run([sys.executable, __file__, page], text=True, capture_output=True, timeout=120)
    assert result.returncode == 1 and "Expected" in result.stdout
    assert stands_in("x *= 2\n", "tests/project/test_docs.py") is False
    assert stands_in("@pytest.mark.parametrize\n", "tests/project/test_docs.py") is False       # not a whole line
    assert stands_in("return wrong\n", "tests/project/test_docs.py")                            # indented there
    (tmp_path / "file").write_text("one\ntwo\none\n")
    for diff in ("--- file\n-three\n+four\n", "--- file\n-one\n"):
        with pytest.raises(ValueError, match="file has [02] places"): apply(diff, tmp_path)
    apply("--- file\n@@\n two\n-one\n+three\n", tmp_path)
    assert (tmp_path / "file").read_text() == "one\ntwo\nthree\n"


if __name__ == "__main__":
    failures = run(Path(sys.argv[1]).resolve())
    print(*failures, sep="\n")
    sys.exit(bool(failures))
