"""`python -m cygrad demo`: the command line."""

import argparse
import sys


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message):
        self.exit(2, f"{self.prog}: error: {message}\n")


def whole(least):
    """A reader of whole numbers of at least `least`."""

    def read(text):
        try:
            n = int(text)
        except ValueError:
            n = least - 1
        if n < least: raise argparse.ArgumentTypeError(f"wants a whole number of at least {least}, got {text!r}")
        return n

    return read


def parser():
    top = Parser(prog="python -m cygrad", description="cygrad: automatic differentiation whose memory you can see.")
    commands = top.add_subparsers(dest="command", required=True, metavar="command")
    demo = commands.add_parser(
        "demo", help="train a network on handwritten digits and show its speed and its bytes",
        description="Train an MLP 64-128-64-10 with Adam on scikit-learn's handwritten digits; print the test "
                    "accuracy, the steps per second and where every byte was at the peak of a step, and draw a "
                    "picture of it. Needs the packages of `pip install cygrad[demo]`.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    demo.add_argument("--epochs", type=whole(1), default=30, metavar="N", help="passes over the training images")
    demo.add_argument("--batch-size", type=whole(1), default=64, metavar="N", help="images in one step")
    demo.add_argument("--threads", type=whole(1), default=argparse.SUPPRESS, metavar="N",
                      help="threads that kernels may use (default: CYGRAD_NUM_THREADS, or one for each processor)")
    demo.add_argument("--seed", type=whole(0), default=0, metavar="N",
                      help="of the weights and of the order of the images")
    demo.add_argument("--output", default="out/digits.png", metavar="PATH",
                      help="the picture (.png, .svg or .pdf), or a directory for it")
    return top


def main(arguments=None):
    options = parser().parse_args(arguments)
    from cygrad.demo import digits

    try:
        digits.main(options.epochs, options.batch_size, getattr(options, "threads", None), options.seed, options.output)
    except digits.DemoError as e:
        print(f"python -m cygrad demo: error: {e}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
