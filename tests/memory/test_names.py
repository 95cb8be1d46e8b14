"""memory.why: the variables, attributes and containers that lead to a tensor are named as a program writes them."""

import asyncio
import collections
import functools
import gc
import threading
import types
import weakref

import pytest

import cygrad as cg
from cygrad.memory import naming

H = types.SimpleNamespace()


def names(t):
    """The names, without those of this module's functions, which have `t` as well."""
    return [name for name in cg.memory.why(t).names if not name.startswith("t in ")]


@pytest.fixture(scope="module", autouse=True)
def all_objects(few_objects):
    """No object is frozen: memory.why finds frozen ones on ways from modules, which takes three times as long."""
    gc.unfreeze()


@pytest.fixture(autouse=True)
def empty():
    yield
    vars(H).clear()


def test_containers_and_attributes():
    H.cache = {"k": [cg.ones(3)], 2: (cg.ones(4),), None: collections.deque([0, cg.ones(5)])}
    assert names(H.cache["k"][0]) == ['H.cache["k"][0]']
    assert names(H.cache[2][0]) == ["H.cache[2][0]"]
    assert names(H.cache[None][1]) == ["H.cache[None][1]"]
    point = collections.namedtuple("point", "x y")
    H.p = point(cg.ones(1), cg.ones(2))
    assert names(H.p.y) == ["H.p.y"]
    H.f = functools.partial(print, cg.ones(3), end=cg.ones(4))
    assert names(H.f.args[0]) == ["H.f.args[0]"]
    assert names(H.f.keywords["end"]) == ['H.f.keywords["end"]']
    H.d = {cg.ones: cg.ones(2)}
    assert names(H.d[cg.ones])[0].startswith("H.d[<")


def test_what_gc_freeze_has_moved():
    H.cache = {"k": [cg.ones(3)]}
    gc.freeze()
    try: assert names(H.cache["k"][0]) == ['H.cache["k"][0]']
    finally: gc.unfreeze()


def test_classes_slots_and_defaults():
    default = cg.ones(7)

    class Slotted:
        __slots__ = ("q",)
        shared = cg.ones(6)

        def method(self, x=default): return x

    H.S, H.s = Slotted, Slotted()
    H.s.q = cg.ones(3)
    del Slotted, default
    assert names(H.s.q) == ["H.s.q"]
    assert names(H.S.shared) == ["H.S.shared"]
    assert names(H.s.method()) == ["H.S.method.__defaults__[0]"]
    vars(H).clear()
    gc.collect()                                    # (a class is in a cycle)


def test_modules_parameters_and_gradients():
    H.net = cg.nn.Sequential(cg.nn.Linear(3, 4), cg.nn.ReLU(), cg.nn.Linear(4, 2))
    weight = H.net[2].weight
    with cg.record(): y = H.net(cg.ones((2, 3))).sum()
    y.backward()
    assert names(weight) == ["H.net[2].weight", "weight in test_modules_parameters_and_gradients"]
    assert "H.net[2].weight.grad" in names(weight.grad)


def test_local_variables():
    h = cg.ones((2, 3))
    views = [h.T, h[1:]]
    assert names(h) == ["h in test_local_variables",
                        "views[0] in test_local_variables, of shape (3, 2)",
                        "views[1] in test_local_variables, of shape (1, 3)"]
    assert names(views[0]) == ["views[0] in test_local_variables",
                               "h in test_local_variables, of shape (2, 3)",
                               "views[1] in test_local_variables, of shape (1, 3)"]
    del views
    assert names(h) == ["h in test_local_variables"]
    assert cg.memory.why(h).holders == 1            # (nothing of the search is left)


def test_both_the_local_and_the_lasting_name_of_a_container():
    H.kept = kept = [cg.ones(3)]
    assert names(kept[0]) == ["H.kept[0]",
                              "kept[0] in test_both_the_local_and_the_lasting_name_of_a_container"]


def test_closures_generators_and_coroutines():
    def outer():
        shared = cg.ones(3)
        return lambda: shared

    f = outer()
    assert names(f()) == ["shared in the closure of <lambda>"]

    def numbers():
        z = cg.ones(2)
        yield z

    g = numbers()
    assert names(next(g)) == ["z in numbers"]

    async def waits():
        z = cg.ones(2)
        found.append(names(z))
        await asyncio.sleep(0)
        found.append(names(z))

    found = []
    asyncio.run(waits())
    assert all("z in waits" in ways for ways in found)


def test_a_traceback_that_holds_a_frame():
    def fails():
        lost = cg.ones(8)
        found.append(weakref.ref(lost))
        raise ValueError("expected")

    found = []
    try: fails()
    except ValueError as e: H.error = e
    wanted = 'H.error.__traceback__.tb_next.tb_frame.f_locals["lost"]'
    assert names(found[0]()) == [f"{wanted}"]
    del H.error
    assert found[0]() is None or gc.collect() and found[0]() is None


def test_other_threads():
    def other():
        deep = cg.ones(9)
        found.append(weakref.ref(deep))
        ready.set()
        done.wait(60)

    found, ready, done = [], threading.Event(), threading.Event()
    thread = threading.Thread(target=other, daemon=True)
    thread.start()
    ready.wait()
    seen = names(found[0]())
    done.set()
    thread.join()
    assert seen == ["deep in other"]


def test_what_nothing_refers_to():
    assert names(cg.ones(3)) == []
    cycle = [cg.ones(3)]
    cycle.append(cycle)
    seen = weakref.ref(cycle[0])
    del cycle
    assert names(seen()) in (["<list>[0]"], ["<list>[1][0]"])
    gc.collect()
    assert seen() is None


def test_reading_late_and_twice():
    x = cg.ones(3)
    w = cg.memory.why(x)
    y = x
    assert w.names == ["x in test_reading_late_and_twice", "y in test_reading_late_and_twice"]
    del y
    assert len(w.names) == 2                        # (as when it was read first)
    w = cg.memory.why(x)
    del x
    assert w.names == [] and "named" not in repr(w)


def test_the_search_is_bounded():
    H.many = [cg.ones(3)]
    H.many += [H.many[0].detach() for _ in range(30)]
    text = repr(cg.memory.why(H.many[0]))
    assert text.count("\n  H.many[") == 20 and text.endswith("and 11 more")
    for _ in range(naming.HIGHEST + 5): H.many = [H.many]
    x = H.many
    while isinstance(x, list): x = x[0]
    del text
    assert "x in test_the_search_is_bounded" in names(x)


def test_properties_that_raise():
    class Hostile:
        def __init__(self): self.kept = [cg.ones(3)]

        def __getattribute__(self, name):
            if name == "__dict__": raise RuntimeError("no")
            return super().__getattribute__(name)

        def __repr__(self): raise RuntimeError("no")

        def __hash__(self): return 1

        def __eq__(self, other): raise RuntimeError("no")

    H.h = Hostile()
    H.d = {H.h: cg.ones(4)}
    assert names(H.h.kept[0]) == ["H.h.<list>[0]"]
    assert names(next(iter(H.d.values())))[0].startswith("H.d[<")
