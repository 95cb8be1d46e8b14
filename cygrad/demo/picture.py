"""The demo's picture: the training loss, and the live bytes during one step."""

import matplotlib
import numpy as np

matplotlib.use("Agg")           # before pyplot is imported

from matplotlib import pyplot as plt

# from the bottom up: memory that persists through the step, then memory that the step allocates
STACK = (("parameters", "#30638e"), ("optimizer", "#7ba7cc"), ("gradients", "#d1495b"), ("saved", "#edae49"),
         ("workspace", "#66a182"), ("other", "#b9b9b9"))
INK = "#333333"


def draw(path, losses, n_batches, step, accuracy):
    """Write the picture to `path`: the loss at every step with its mean over each epoch of `n_batches`, and the live
    bytes of `step`, by category, after every event."""
    style = {"font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": INK,
             "axes.labelcolor": INK, "text.color": INK, "xtick.color": INK, "ytick.color": INK,
             "axes.titlesize": 11, "axes.titlelocation": "left", "svg.hashsalt": "cygrad"}
    with plt.rc_context(style):
        figure, (left, right) = plt.subplots(1, 2, figsize=(13, 5.2), width_ratios=(2, 3), layout="constrained")
        draw_loss(left, losses, n_batches, accuracy)
        draw_memory(right, step)
        figure.savefig(path, dpi=150)
        plt.close(figure)


def draw_loss(axes, losses, n_batches, accuracy):
    losses = np.array(losses)
    means = losses.reshape(-1, n_batches).mean(1)
    axes.plot(np.arange(len(losses)) / n_batches, losses, color="#7ba7cc", lw=0.6, label="each step")
    axes.plot(np.arange(len(means)) + 0.5, means, color="#30638e", lw=2, marker="o" if len(means) < 8 else None,
              label="mean of the epoch")
    axes.set(yscale="log", xlabel="epoch", ylabel="cross-entropy", xlim=(0, len(means)),
             title=f"training loss (test accuracy {accuracy:.1%})")
    axes.grid(axis="y", color="#dddddd", lw=0.6)
    axes.legend(frameon=False, loc="upper right")


def draw_memory(axes, step):
    x = np.arange(len(step.moments) + 1)
    at_peak = step.moments[step.peak]
    base = np.zeros(len(x))
    for name, color in STACK:
        part = np.array([m[name] for m in step.moments]) / 1024
        top = base + np.append(part, part[-1])
        axes.fill_between(x, base, top, step="post", color=color, lw=0, label=f"{name}  {at_peak[name]:,}")
        base = top
    axes.step(x, base, where="post", color=INK, lw=0.9)
    peak = step.peak_bytes / 1024
    axes.axhline(peak, color=INK, lw=0.8, ls=(0, (4, 3)))
    axes.plot(step.peak + 0.5, peak, "o", color=INK, ms=5, zorder=5)
    axes.annotate(f"peak: {step.peak_bytes:,} bytes", (0, peak), (5, 5), textcoords="offset points", weight="bold")
    turn = len(step.forward) - step.forward[::-1].index(True)       # the first moment after the forward pass
    axes.axvline(turn, color=INK, lw=0.8)
    for where, word in ((turn / 2, "forward"), ((turn + x[-1]) / 2, "backward, update")):
        axes.text(where, peak * 1.12, word, ha="center", va="center", style="italic")
    axes.set(xlim=(0, x[-1]), ylim=(0, peak * 1.16), xlabel="memory events (allocated, freed, recategorised), in order",
             ylabel="live KiB", title="live bytes in one training step, by category")
    handles, names = axes.get_legend_handles_labels()
    axes.legend(handles[::-1], names[::-1], title="bytes at the peak", loc="center left", bbox_to_anchor=(1, 0.5),
                frameon=False, alignment="left")
