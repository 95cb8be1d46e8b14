"""`python -m cygrad`: the command line."""

import argparse
import os
import sys

from cygrad import __version__


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message):
        self.exit(2, f"{self.prog}: error: {message}\n")


def integer(least):
    """An argument type: an int of at least `least`."""

    def read(text):
        try:
            n = int(text)
        except ValueError:
            n = least - 1
        if n < least: raise argparse.ArgumentTypeError(f"must be an int of at least {least}, got {text!r}")
        return n

    return read


def parser():
    top = Parser(prog="python -m cygrad", description="cygrad: automatic differentiation that counts its memory.")
    top.add_argument("--version", action="version", version=f"cygrad {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="command")
    demo = commands.add_parser(
        "demo", help="train a network on handwritten digits and show its speed and its memory",
        description="Train an MLP or a CNN with Adam on scikit-learn's handwritten digits. Print the test accuracy, "
                    "the steps per second and what every byte was used for at the peak of a step, and draw a picture "
                    "of it. Needs the packages of `pip install cygrad[demo]`.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    demo.add_argument("--model", choices=("mlp", "cnn"), default="mlp", help="the network")
    demo.add_argument("--epochs", type=integer(1), default=30, metavar="N", help="passes over the training images")
    demo.add_argument("--batch-size", type=integer(1), default=64, metavar="N", help="images in one step")
    demo.add_argument("--threads", type=integer(1), default=argparse.SUPPRESS, metavar="N",
                      help="the maximum number of threads for kernels (default: CYGRAD_NUM_THREADS, or one per CPU)")
    demo.add_argument("--seed", type=integer(0), default=0, metavar="N",
                      help="the seed of the weights, of dropout and of the order of the images")
    demo.add_argument("--output", default="out/digits.png", metavar="PATH",
                      help="the file of the picture (.png, .svg or .pdf), or its directory")
    learn = commands.add_parser(
        "learn", help="write exercises into a folder and check them",
        description="Write the exercises of the walkthrough that are not there yet into a folder, check them in order, "
                    "and explain the first that fails. Files that are there are never overwritten. The exit status is "
                    "0 if all have passed that were asked for.")
    learn.add_argument("folders", nargs="*", default=["cygrad-exercises"], metavar="FOLDER",
                       help="the folder (default: cygrad-exercises); with --summary several")
    what = learn.add_mutually_exclusive_group()
    what.add_argument("--all", action="store_true", dest="every", help="check all exercises and explain all that fail")
    what.add_argument("--reset", metavar="NAME", help="write one exercise anew and keep the old file beside it")
    what.add_argument("--summary", action="store_true",
                      help="check all and print a line for each folder, without writing anything into them")
    learn.add_argument("--chapter", type=integer(1), metavar="N", help="only the exercises of this chapter")
    learn.add_argument("--json", action="store_true", dest="as_json", help="check all and print the results as JSON")
    learn.add_argument("--timeout", type=integer(1), default=20, dest="seconds", metavar="S",
                       help="the seconds that a check may take (default: 20)")
    profile = commands.add_parser(
        "profile", allow_abbrev=False, help="run a script and show what its memory was used for at the peak",
        usage="python -m cygrad profile [--by COLUMN] [--html PATH] [--trace PATH] [--compare PATH] script.py "
              "[arguments]",
        description="Run a script as `python script.py arguments` would. When it has ended, print what every byte of "
                    "tensor data was used for at the peak. The options may also follow the script. Arguments after "
                    "`--` go to the script.")
    report_options(profile)
    profile.add_argument("script", help="the Python file to run")
    profile.add_argument("arguments", nargs=argparse.REMAINDER, help="the arguments of the script")
    run = commands.add_parser(
        "run", help="run a net that Net.save(path, weights=True) wrote, on arrays in .npy files",
        description="Load a net, run it on arrays, and write its outputs, or print them. Nothing in the files is run "
                    "as code.")
    run.add_argument("net", metavar="NET", type=existing, help="the file of the net (.cg or .safetensors)")
    run.add_argument("--input", action="append", default=[], metavar="[NAME=]PATH",
                     help="an array (.npy) for the input NAME, or for the next input without one")
    run.add_argument("--output", action="append", default=[], metavar="[NAME=]PATH",
                     help="the file (.npy) for the output NAME, or for the next output; the others are printed")
    return top


def report(suffix):
    """An argument type: the path of a report. It is checked before the script runs."""

    def read(path):
        there = os.path.dirname(path) or "."
        if not path.endswith(suffix): raise argparse.ArgumentTypeError(f"must be a file named *{suffix}, got {path!r}")
        if not os.path.isdir(there) or not os.access(there, os.W_OK):
            raise argparse.ArgumentTypeError(f"{path!r} cannot be written: {there!r} is not a writable directory")
        return os.path.abspath(path)

    return read


def existing(path):
    if not os.path.isfile(path): raise argparse.ArgumentTypeError(f"{path!r} is not a file")
    return os.path.abspath(path)


def report_options(parser):
    from cygrad.memory.profiling import COLUMNS

    parser.add_argument("--by", choices=COLUMNS, default=argparse.SUPPRESS,
                        help="what the rows of the table show (default: operation)")
    parser.add_argument("--html", metavar="PATH", type=report(".html"), default=argparse.SUPPRESS,
                        help="write the report as an HTML page")
    parser.add_argument("--trace", metavar="PATH", type=report(".json"), default=argparse.SUPPRESS,
                        help="write a trace for ui.perfetto.dev, chrome://tracing and --compare")
    parser.add_argument("--compare", metavar="PATH", type=existing, default=argparse.SUPPRESS,
                        help="print the changes since a run with --trace PATH")


def demo(options, _):
    from cygrad.demo import digits

    try:
        digits.main(options.model, options.epochs, options.batch_size, getattr(options, "threads", None), options.seed,
                    options.output)
    except digits.DemoError as e:
        print(f"python -m cygrad demo: error: {e}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    return 0


def learn(options, _):
    from cygrad.learn import command, course

    given = {name: value for name, value in vars(options).items() if name != "command"}
    try:
        status = command.run(**given)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())     # (Python writes the rest when it ends)
        return 141                                                         # (as if ended by SIGPIPE)
    except (course.LearnError, OSError) as e:
        print(f"python -m cygrad learn: error: {described(e)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130


def described(e):
    """An error in one line: of the system, the file and the reason."""
    return f"{e.filename}: {e.strerror}" if isinstance(e, OSError) and e.filename is not None else str(e)


def profile(options, own):
    """Run the script in a profile and return its exit status. `own` has the arguments after `--`."""
    import runpy
    import traceback

    from cygrad import memory

    after = Parser(prog="python -m cygrad profile", add_help=False, allow_abbrev=False)
    report_options(after)
    _, others = after.parse_known_args(options.arguments, options)
    if not os.path.isfile(options.script):
        print(f"python -m cygrad profile: error: {options.script} is not a file", file=sys.stderr)
        return 2
    status = 0
    sys.argv = [options.script, *others, *own]
    sys.path[0] = os.path.dirname(os.path.abspath(options.script))
    with memory.profile() as p:
        try:
            runpy.run_path(options.script, run_name="__main__")
        except SystemExit as e:
            status = e.code if isinstance(e.code, int) else int(e.code is not None)
            if status and not isinstance(e.code, int): print(e.code, file=sys.stderr)
        except BaseException as e:
            status = 130 if isinstance(e, KeyboardInterrupt) else 1
            traceback.print_exception(e.with_traceback(script_part(e.__traceback__, options.script)))
    print(p.table(getattr(options, "by", "operation")))
    for found in (*p.growth(), *p.advice()): print(found)
    if hasattr(options, "compare"):
        try:
            print(p.compare(options.compare))
        except ValueError as e:
            print(f"python -m cygrad profile: error: {e}", file=sys.stderr)
            status = status or 2
    for path in (getattr(options, "html", None), getattr(options, "trace", None)):
        if path is None: continue
        try:
            p.save(path)
        except OSError as e:
            print(f"python -m cygrad profile: error: {path}: {e}", file=sys.stderr)
            status = status or 2
    return status


def run(options, _):
    from cygrad.nets import command

    try: command.run(options.net, options.input, options.output)
    except (ArithmeticError, LookupError, MemoryError, OSError, RuntimeError, TypeError, ValueError) as e:
        for line in (f"python -m cygrad run: error: {e}", *getattr(e, "__notes__", ())): print(line, file=sys.stderr)
        return 2
    return 0


def script_part(tb, script):
    """The traceback from the script's first frame on, as Python would print it, or all of it if there is no such
    frame."""
    first = tb
    while tb is not None and tb.tb_frame.f_code.co_filename != script: tb = tb.tb_next
    return tb or first


def main(arguments=None):
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    own = []
    if arguments[:1] == ["profile"] and "--" in arguments:
        cut = arguments.index("--")
        arguments, own = arguments[:cut], arguments[cut + 1:]
    options = parser().parse_args(arguments)
    return {"demo": demo, "learn": learn, "profile": profile, "run": run}[options.command](options, own)


if __name__ == "__main__":
    sys.exit(main())
