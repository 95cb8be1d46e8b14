"""Chapters 7, 15 and 21 to 24: times of kernels, spans of memory, patches of an image, blocks of scores, bytes of
layers, the block of a product."""

import json
import subprocess
import sys
from pathlib import Path

from drawing import BACKWARD, EDGE, FORWARD, box, element, page, svg, text

import cygrad as cg
from cygrad import nn

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
STEPS = RESULTS / "steps.md"
PRODUCTS = RESULTS / "products.md"
KEPT = "#e2e8f0"

# ---- chapter 21: times -----------------------------------------------------------------------------------------------

def steps():
    """The rows of steps.md as bars."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in STEPS.read_text().splitlines() if line]
    longest = max(float(time) for _, time in rows[2:])
    parts = [text(8, 20, f"{rows[0][0]}: {rows[0][1]}", weight="bold")]
    for i, (name, time) in enumerate(rows[2:]):
        y, width = 34 + 24 * i, 300 * float(time) / longest
        color = BACKWARD if "NumPy" in name or "five" in name else FORWARD
        parts += [text(8, y + 13, name), box(330, y, width, 17, color), text(336 + width, y + 13, time)]
    return svg(680, 34 + 24 * (len(rows) - 2) + 8, parts)


# ---- chapter 15: spans -----------------------------------------------------------------------------------------------

MOMENTS = """
import json, sys
import cygrad as cg

MIB = 1 << 20

def block(n): return cg.empty(n * MIB, "uint8")

def moment(blocks):
    stats = cg.memory.stats()
    at = [(x.numpy().ctypes.data, x.nbytes) for x in blocks]
    return at, stats["live_bytes"], stats["live_bytes"] + stats["cached_bytes"]

blocks = [block(n) for n in (3, 5, 3, 5, 3, 5)]
moments = [moment(blocks)]
del blocks[::2]
moments.append(moment(blocks))
moments.append(moment(blocks + [block(4) for _ in range(8)]))
json.dump(moments, sys.stdout)
"""


def spans():
    """The buffers of the chapter's last exercise at their addresses, at three moments of a process of its own."""
    moments = json.loads(subprocess.run([sys.executable, "-c", MOMENTS], check=True, capture_output=True).stdout)
    mib, base = 1 << 20, moments[0][0][0][0]
    across, parts, first = 640 / 56, [], moments[0][0]
    for i, (title, (at, live, held)) in enumerate(zip(
            ("six buffers", "three are freed", "eight of 4 MiB are allocated"), moments, strict=True)):
        y = 30 + 74 * i
        parts.append(text(20, y, f"{title}: live {live / mib:.0f} MiB, held {held / mib:.0f} MiB", weight="bold"))
        if i:
            parts += [box(20 + (begin - base) / mib * across, y + 8, size / mib * across, 34, KEPT, "free")
                      for begin, size in first[::2]]
        for begin, size in at:
            x, color = 20 + (begin - base) / mib * across, FORWARD if [begin, size] in first else BACKWARD
            parts.append(box(x, y + 8, size / mib * across, 34, color, f"{size // mib}"))
    return svg(680, 240, parts)


def arena():
    """The page that runs requests by the rules of the arena."""
    return page("arena")


# ---- chapter 23: patches ---------------------------------------------------------------------------------------------

def windows():
    """unfold of a 3 x 3 image for a kernel of 2 x 2: the image, and the matrix with the places of the number 4."""
    image = cg.arange(9).astype("float32").reshape(1, 1, 3, 3)
    columns = cg.unfold(image, 2)[0].numpy().astype(int)
    parts = [text(20, 24, f"the image: {image.nbytes} bytes", weight="bold"),
             text(240, 24, f"unfold(image, 2): {columns.size * 4} bytes", weight="bold")]
    for left, matrix in ((20, image.numpy()[0, 0].astype(int)), (240, columns)):
        for i, row in enumerate(matrix):
            parts += [box(left + 40 * j, 40 + 34 * i, 40, 34, BACKWARD if value == 4 else FORWARD, f"{value}")
                      for j, value in enumerate(row)]
    parts.append(element("rect", x=60, y=40, width=80, height=68, fill="none", stroke=EDGE, stroke_width=3))
    parts.append(element("rect", x=280, y=40, width=40, height=136, fill="none", stroke=EDGE, stroke_width=3))
    parts += [text(240 + 40 * j + 20, 192, f"{j}", "middle") for j in range(4)]
    parts.append(text(412, 192, "patch"))
    parts += [text(412, 62 + 34 * i, f"element {divmod(i, 2)} of the kernel") for i in range(4)]
    return svg(600, 206, parts)


# ---- chapter 24: scores ----------------------------------------------------------------------------------------------

def scores():
    """Bytes of the scores of one head in float32: the matrix, and the peak of the operator above its operands."""
    parts = [text(20, 22, "bytes beside q, k, v and the result, one head of 64 numbers, one thread", weight="bold")]
    y = 36
    for T in 256, 512, 1024, 2048:
        q, k, v = (cg.zeros((T, 64)) for _ in range(3))
        with cg.memory.track() as t: result = cg.scaled_dot_product_attention(q, k, v)
        beside = t.peak_bytes - 4 * result.nbytes
        del q, k, v, result
        for name, nbytes, color in (("matrix", 4 * T * T, BACKWARD), ("operator", beside, FORWARD)):
            width = 380 * nbytes / (4 * 2048 ** 2)
            parts += [text(20, y + 13, f"T = {T}" if name == "matrix" else ""), text(90, y + 13, name),
                      box(160, y, width, 17, color), text(166 + width, y + 13, f"{nbytes:,}")]
            y += 20
        y += 10
    return svg(640, y, parts)


# ---- chapter 7: layers -----------------------------------------------------------------------------------------------

def layered():
    """The net of the chapter's summary."""
    return nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(128, 10))


def rows_of(net, images):
    """The rows of the layers in the summary for some images."""
    return net.summary(cg.zeros((images, 1, 8, 8))).rows[1:]


def layers():
    """The rows of the chapter's summary: parameters, and the bytes that each layer keeps for backward."""
    rows = rows_of(layered(), 32)
    most = max(row.kept_bytes for row in rows)
    parts = [text(20, 22, "layer", weight="bold"), text(170, 22, "parameters", weight="bold"),
             text(300, 22, "bytes kept for backward", weight="bold")]
    for i, row in enumerate(rows):
        y, width = 36 + 26 * i, 230 * row.kept_bytes / most
        parts += [text(20, y + 13, f"{row.path}: {row.layer}"), text(250, y + 13, f"{row.parameters:,}", "end"),
                  box(300, y, width, 17, FORWARD), text(306 + width, y + 13, f"{row.kept_bytes:,}")]
    return svg(620, 36 + 26 * len(rows), parts)


def kept():
    """The page with the bytes that each layer keeps, by the number of images and by the layers that are frozen. They
    are linear in the number, so two batches tell them."""
    net, cases = layered(), []
    for frozen in (), ("0",), ("0", "1"), ("5",), ("0", "1", "5"):
        net.unfreeze()
        for path in frozen: net.freeze(path)
        pairs = zip(rows_of(net, 1), rows_of(net, 2), strict=True)
        cases.append({"frozen": frozen, "trained": sum(x.size for x in net.parameters() if x.requires_grad),
                      "kept": [(2 * one.kept_bytes - two.kept_bytes, two.kept_bytes - one.kept_bytes)
                               for one, two in pairs]})
    listed = [{"path": row.path, "layer": row.layer, "parameters": row.parameters} for row in rows_of(net, 1)]
    return page("kept", {"layers": listed, "cases": cases})


# ---- chapter 22: the block of a product ------------------------------------------------------------------------------

def tiles():
    """The page with sliders for the block. Below it are measured products of few rows: the part of products.md with
    one thread."""
    measured = PRODUCTS.read_text().partition("## 2 threads")[0]
    rows = measured.partition("### few rows\n")[2].partition("###")[0].strip().splitlines()[2:]
    cells = [[cell.strip().replace(",", "") for cell in row.strip("|").split("|")] for row in rows]
    rates = [[int(shape.split(" x ")[0]), *map(float, speeds[:3])] for shape, *speeds in cells]
    machine = measured.partition("Measured on ")[2].partition(",")[0]
    title = f"rows x 1,024 x 1,024, {machine}, GFLOP/s: cygrad, NumPy, PyTorch"
    return page("tiles", {"title": title, "rates": rates})


FIGURES = {"steps.svg": steps, "spans.svg": spans, "windows.svg": windows, "scores.svg": scores, "layers.svg": layers,
           "kept.html": kept, "tiles.html": tiles, "arena.html": arena}
