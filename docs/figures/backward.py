"""Chapter 12: the events of its backward pass, as a page to click through and as a drawing of lifetimes."""

import json
from pathlib import Path

from drawing import CATEGORIES, GREY, box, framed, label, svg

import cygrad as cg

TEMPLATE = Path(__file__).with_name("timeline.html")

# The event that is expected, the node that is at its turn, and what happens.
EXPECTED = (
    ("allocate", 4, "other", 0, "The gradient of the head is a single 1."),
    ("category", 4, "gradients", 0, "It is a gradient now. The gradient of the sum repeats it 300 times, as a view."),
    ("allocate", 1200, "workspace", 1, "The product needs dense operands: a dense copy of the repeated 1."),
    ("allocate", 60, "gradients", 1, "The first stage computes the gradient of w2. It becomes w2.grad."),
    ("free", 1200, "workspace", 1, "The stage is over, and so is its workspace."),
    ("allocate", 1200, "workspace", 1, "The second stage needs a dense copy, too. The slot is empty: no later stage "
                                       "reads b here."),
    ("allocate", 2000, "gradients", 1, "The second stage computes the gradient of b."),
    ("free", 1200, "workspace", 1, "Its workspace is released."),
    ("free", 4, "gradients", 1, "This was the last stage that reads the head gradient."),
    ("category", 2000, "gradients", 2, "relu writes its gradient over b: nothing else needs the saved values."),
    ("free", 2000, "gradients", 2, "The incoming gradient of relu was read for the last time."),
    ("allocate", 200, "gradients", 3, "The gradient of w1. It becomes w1.grad."),
    ("free", 4000, "saved", 3, "x was saved for this gradient alone."),
    ("free", 2000, "gradients", 3, "The incoming gradient of linear was read for the last time."),
)
START = {"w1": (200, "parameters"), "w2": (60, "parameters"), "loss": (4, "other"), "H": (4000, "saved"),
         "F": (2000, "saved")}


def program():
    """The loss of the chapter, and its variables. Everything else has no name."""
    w1, w2 = cg.ones((5, 10)).attach_grad(), cg.ones((3, 5)).attach_grad()
    with cg.record(): loss = cg.linear(cg.relu(cg.linear(cg.ones((100, 10)), w1)), w2).sum()
    return loss, (w1, w2)


def states():
    """The state before backward and after each event: live buffers, bytes in the slots of each node, and a text."""
    loss, variables = program()
    nodes = [loss.grad_fn]
    while nodes[-1].next_functions[0][0] is not None: nodes.append(nodes[-1].next_functions[0][0])
    live, letters, unused, seen = dict(START), {}, iter("ABCDEFGH"), []
    assert cg.memory.stats()["live_bytes"] == sum(nbytes for nbytes, _ in live.values())

    def state(event, turn, text):
        seen.append({"event": event, "turn": turn, "text": text, "saved": [node.saved_bytes for node in nodes],
                     "live": [[name, nbytes, category] for name, (nbytes, category) in live.items()]})

    def watch(event):
        kind, buffer, nbytes, category = event
        if buffer not in letters: letters[buffer] = next(unused)
        letter, expected = letters[buffer], EXPECTED[len(seen) - 1]
        assert (kind, nbytes, category) == expected[:3], (event, expected)
        if kind == "free":
            del live[letter], letters[buffer]
        else: live[letter] = nbytes, category
        assert cg.memory.stats()["live_bytes"] == sum(n for n, _ in live.values())
        state(f"{letter}: {kind} {nbytes:,} bytes, {category}", *expected[3:])

    state("before backward", -1, "The graph has saved x (H) and b (F). The gradients are zeros without memory.")
    with cg.memory.events(watch): loss.backward()
    assert len(seen) == 1 + len(EXPECTED) and all(x.grad is not None for x in variables)
    return seen


def timeline():
    """The page to click through."""
    data = {"states": states(), "colors": CATEGORIES, "nodes": ["sum", "linear", "relu", "linear"]}
    return framed(TEMPLATE.read_text().replace("DATA", json.dumps(data, indent=1)))


def events():
    """A row for each buffer, from its allocation to its release, above the live bytes after each event."""
    all_states = states()
    across, rows = 40, {}
    for k, state in enumerate(all_states):
        for name, nbytes, category in state["live"]: rows.setdefault(name, []).append((k, nbytes, category))
    parts = [label(12, 20, "event", font_weight="bold")]
    parts += [label(120 + across * k, 20, k, text_anchor="middle") for k in range(len(all_states))]
    for i, (name, moments) in enumerate(rows.items()):
        y = 30 + 22 * i
        parts.append(label(12, y + 14, f"{name}: {moments[0][1]:,}"))
        while moments:
            category = moments[0][2]
            run = [m for m in moments if m[2] == category]
            parts.append(box(100 + across * run[0][0], y, across * len(run), 18, CATEGORIES[category], category))
            moments = [m for m in moments if m[2] != category]
    below = 30 + 22 * len(rows) + 90
    sums = [sum(nbytes for _, nbytes, _ in state["live"]) for state in all_states]
    for k, total in enumerate(sums):
        height = 70 * total / max(sums)
        parts.append(box(100 + across * k, below - height, across, height, "#e2e8f0", "", f"{total:,} bytes"))
        parts.append(label(100 + across * k + 20, below + 14, f"{total:,}", text_anchor="middle", fill=GREY))
    parts.append(label(12, below + 14, "live bytes", font_weight="bold"))
    return svg(100 + across * len(all_states) + 12, below + 24, parts)


FIGURES = {"timeline.html": timeline, "events.svg": events}
