"""Files exchanged with PyTorch, the safetensors package and NumPy, both ways."""

import numpy as np
import pytest
from crafted import equal

import cygrad as cg

torch = pytest.importorskip("torch")
package = pytest.importorskip("safetensors")
from safetensors.torch import load_file, save_file      # noqa: E402

DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64".split()


def samples():
    r = np.random.default_rng(3)
    return {f"{dtype}.{i}": r.integers(0, 2 if dtype == "bool" else 100, shape).astype(dtype)
            for dtype in DTYPES for i, shape in enumerate([(3, 4), (), (0, 2), (5,)])}


def test_tensors_of_pytorch_through_safetensors(tmp_path):
    path, arrays = tmp_path / "x.safetensors", samples()
    cg.save(path, arrays, {"format": "pt"})
    found = load_file(path)
    assert found.keys() == arrays.keys() and all(equal(cg.asarray(t), arrays[name]) for name, t in found.items())
    with package.safe_open(path, "pt") as file: assert file.metadata() == {"format": "pt"}
    save_file(found, path, {"step": "7"})
    for keywords in ({}, {"mmap": True}):
        again = cg.load(path, **keywords)
        assert again.keys() == arrays.keys() and all(equal(t, arrays[name]) for name, t in again.items())
    assert cg.io.metadata(path) == {"step": "7"}


def test_tensors_of_pytorch_through_npz(tmp_path):
    path, arrays = tmp_path / "x.npz", samples()
    cg.save(path, {name: torch.from_numpy(a) for name, a in arrays.items()})
    with np.load(path, allow_pickle=False) as file:
        found = {name: torch.from_numpy(file[name]) for name in file.files}
    assert found.keys() == arrays.keys() and all(equal(cg.asarray(t), arrays[name]) for name, t in found.items())
    for write in (np.savez, np.savez_compressed):
        write(path, **{name: t.numpy() for name, t in found.items()})
        again = cg.load(path)
        assert list(again) == list(arrays) and all(equal(t, arrays[name]) for name, t in again.items())


@pytest.mark.parametrize("suffix", [".safetensors", ".npz"])
def test_a_state_dict_of_pytorch(tmp_path, suffix):
    """Variables of PyTorch are saved by its detach(), strided ones in row-major order."""
    net, path = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3)), tmp_path / ("x" + suffix)
    cg.save(path, {**net.state_dict(), "T": net[0].weight.detach().T})
    found = cg.load(path)
    assert list(found) == [*net.state_dict(), "T"]
    assert found["1.num_batches_tracked"].dtype == "int64"
    other = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
    other.load_state_dict({name: torch.from_dlpack(t.copy()) for name, t in found.items() if name != "T"})
    assert torch.equal(other[0].weight, net[0].weight)
    assert torch.equal(torch.from_dlpack(found["T"]), net[0].weight.detach().T)


def test_half_precision_of_pytorch(tmp_path):
    path = tmp_path / "x.safetensors"
    t = torch.randn(1000, generator=torch.Generator().manual_seed(1))
    save_file({"b": t.bfloat16(), "h": t.half(), "f8": t.half()}, path)
    found = cg.load(path, dtype=cg.float32)
    assert torch.equal(torch.from_dlpack(found["b"]), t.bfloat16().float())
    assert torch.equal(torch.from_dlpack(found["h"]), t.half().float())
    save_file({"f8": t.to(torch.float8_e4m3fn)}, path)
    with pytest.raises(ValueError, match="'f8' has the dtype 'F8_E4M3'; cygrad loads BOOL, "): cg.load(path)


def test_the_package_and_cygrad_refuse_the_same_files(tmp_path):
    """What the safetensors package refuses, cygrad refuses: headers with one byte changed."""
    refused, path = 0, tmp_path / "x.safetensors"
    cg.save(path, {"w": [1.0, 2.0], "b": [True]}, {"k": "v"})
    data = path.read_bytes()
    r = np.random.default_rng(5)
    for _ in range(300):
        changed = bytearray(data)
        changed[r.integers(len(data) - 9)] = r.choice(list(b' "{}[]:,0123456789abcDFI\\\xff'))
        path.write_bytes(changed)
        try: package.deserialize(bytes(changed))
        except package.SafetensorError:
            with pytest.raises(ValueError): cg.load(path)
            refused += 1
    assert refused > 150
