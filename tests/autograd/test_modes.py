"""The scopes of contract 2: what each sets and restores, and what it can decorate."""

import asyncio
import inspect
import itertools
import threading

import pytest

import cygrad as cg


def flags():
    return cg.is_recording(), cg.is_training()


def set_flags(recording, training):
    cg.set_recording(recording)
    cg.set_training(training)


# name, maker, the recording flag inside (None: untouched), the training flag inside
SCOPES = [
    ("record", cg.record, True, True),
    ("record(True)", lambda: cg.record(True), True, True),
    ("record(False)", lambda: cg.record(train_mode=False), True, False),
    ("record(None)", lambda: cg.record(None), True, None),
    ("pause", cg.pause, False, False),
    ("pause(True)", lambda: cg.pause(True), False, True),
    ("pause(None)", lambda: cg.pause(train_mode=None), False, None),
    ("train_mode", cg.train_mode, None, True),
    ("predict_mode", cg.predict_mode, None, False),
    ("no_grad", cg.no_grad, False, None),
    ("enable_grad", cg.enable_grad, True, None),
    ("inference_mode", cg.inference_mode, False, None),
    ("inference_mode(False)", lambda: cg.inference_mode(False), True, None),
]
every_scope = pytest.mark.parametrize("make, recording, training", [s[1:] for s in SCOPES], ids=[s[0] for s in SCOPES])
BARE = [(cg.record, True, True), (cg.pause, False, False), (cg.train_mode, None, True), (cg.predict_mode, None, False),
        (cg.no_grad, False, None), (cg.enable_grad, True, None), (cg.inference_mode, False, None)]
STATES = list(itertools.product([False, True], repeat=2))


def expected(state, recording, training):
    return (state[0] if recording is None else recording, state[1] if training is None else training)


def test_flags_are_off_at_start_in_every_thread():
    seen = []
    with cg.record():
        thread = threading.Thread(target=lambda: seen.append(flags()))
        thread.start()
        thread.join()
        assert flags() == (True, True)
    assert seen == [(False, False)] and flags() == (False, False)


def test_set_flags_return_what_was():
    assert cg.set_recording(True) is False and cg.set_recording(False) is True
    assert cg.set_training(True) is False and cg.set_training(False) is True
    assert cg.set_recording(False) is False
    assert cg.is_recording() is False and cg.is_training() is False


@every_scope
@pytest.mark.parametrize("state", STATES)
def test_scope_sets_and_restores(make, recording, training, state):
    set_flags(*state)
    with make():
        assert flags() == expected(state, recording, training)
    assert flags() == state
    set_flags(False, False)


@every_scope
@pytest.mark.parametrize("state", STATES)
def test_scope_restores_after_exceptions_and_sets(make, recording, training, state):
    set_flags(*state)
    with pytest.raises(KeyError), make():
        raise KeyError
    assert flags() == state
    with make():
        set_flags(not state[0], not state[1])
    # the scope does not restore a flag that it does not set
    assert flags() == (not state[0] if recording is None else state[0], not state[1] if training is None else state[1])
    set_flags(False, False)


@every_scope
def test_one_scope_entered_again(make, recording, training):
    scope = make()
    for _ in range(2):
        with scope:
            with cg.record(False), scope, cg.pause(), scope:
                assert flags() == expected((False, False), recording, training)
            assert flags() == expected((False, False), recording, training)
        assert flags() == (False, False)


@every_scope
def test_one_scope_in_two_threads(make, recording, training):
    """The first to enter is the first to leave, and each thread gets its own flags back."""
    scope = make()
    second_entered, first_left = threading.Event(), threading.Event()
    seen = []

    def second():
        set_flags(False, True)
        with scope:
            second_entered.set()
            seen.append(flags() == expected((False, True), recording, training))
            seen.append(first_left.wait(10))
        seen.append(flags() == (False, True))

    set_flags(True, False)
    with scope:
        thread = threading.Thread(target=second)
        thread.start()
        assert second_entered.wait(10)
        assert flags() == expected((True, False), recording, training)
    assert flags() == (True, False)
    first_left.set()
    thread.join()
    assert seen == [True] * 3
    set_flags(False, False)


def test_all_scopes_nest():
    for (_, outer, r1, t1), (_, inner, r2, t2) in itertools.product(SCOPES, repeat=2):
        with outer():
            state = flags()
            with inner():
                assert flags() == expected(state, r2, t2)
            assert flags() == state == expected((False, False), r1, t1)


def test_arguments_are_checked():
    for scope, value in itertools.product((cg.record, cg.pause), ("yes", 1, 0, [])):
        with pytest.raises(TypeError, match="train_mode must be True, False or None"):
            scope(value)
    for scope in (cg.train_mode, cg.no_grad):
        with pytest.raises(TypeError, match="a scope can decorate only functions, got 3"):
            scope(3)
    with pytest.raises(TypeError, match="a scope can decorate only functions, got 'f'"):
        cg.record()("f")


# ---- decorators ------------------------------------------------------------------------------------------------------

def decorators(scope):
    return scope, scope()


@pytest.mark.parametrize("scope, recording, training", BARE)
def test_decorated_function(scope, recording, training):
    for decorate in decorators(scope):
        @decorate
        def f(x, *, y=2):
            """What f does."""
            return flags(), x + y

        for state in STATES:
            set_flags(*state)
            assert f(1, y=3) == (expected(state, recording, training), 4)
            assert flags() == state
        assert f.__name__ == "f" and f.__doc__ == "What f does." and "x" in inspect.signature(f).parameters
        set_flags(False, False)


@pytest.mark.parametrize("scope, recording, training", BARE)
def test_decorated_method_and_recursion(scope, recording, training):
    class C:
        @scope
        def m(self, n):
            return [flags()] + (self.m(n - 1) if n else [])

    inside = expected((False, False), recording, training)
    assert C().m(3) == [inside] * 4
    assert flags() == (False, False)


@pytest.mark.parametrize("scope, recording, training", BARE)
def test_decorated_generator(scope, recording, training):
    """The body resumes with the flags that it had when suspended. The caller's flags do not change."""
    for decorate in decorators(scope):
        @decorate
        def generate():
            seen = [flags()]
            got = yield flags()
            seen.append((flags(), got))
            with cg.record(False):
                yield flags()
            cg.set_training(True)
            yield flags()
            yield flags()
            return seen

        inside = expected((False, False), recording, training)
        g = generate()
        assert inspect.isgeneratorfunction(generate)
        assert next(g) == inside and flags() == (False, False)
        cg.set_recording(True)
        assert g.send("sent") == (True, False) and flags() == (True, False)
        cg.set_recording(False)
        assert next(g) == (inside[0], True) and flags() == (False, False)
        assert next(g) == (inside[0], True) and flags() == (False, False)
        with pytest.raises(StopIteration) as stop:
            next(g)
        assert stop.value.value == [inside, (inside, "sent")]
        del stop


def test_generators_interleave():
    @cg.record
    def recorded():
        for _ in range(3):
            yield flags()

    @cg.predict_mode
    def predicted():
        for _ in range(3):
            yield flags()

    assert list(zip(recorded(), predicted(), strict=True)) == [((True, True), (False, False))] * 3
    assert flags() == (False, False)


def test_generator_throw_and_close():
    seen = []

    @cg.record
    def generate():
        try:
            yield 1
        except KeyError:
            seen.append(flags())
        try:
            yield 2
        finally:
            seen.append(flags())

    g = generate()
    next(g)
    assert g.throw(KeyError()) == 2 and flags() == (False, False)
    g.close()
    assert seen == [(True, True), (True, True)] and flags() == (False, False)
    g = generate()
    next(g)
    with pytest.raises(ZeroDivisionError):
        g.throw(ZeroDivisionError())
    assert flags() == (False, False)


def test_generator_that_is_dropped_half_way():
    @cg.record
    def generate():
        x = cg.tensor([1.0]).attach_grad()
        yield (x * x).requires_grad

    assert next(generate()) is True
    assert flags() == (False, False)


@pytest.mark.parametrize("scope, recording, training", BARE)
def test_decorated_coroutine(scope, recording, training):
    """Two coroutines with different flags take turns. Neither affects the other or the event loop."""
    inside = expected((False, False), recording, training)
    seen = []
    for decorate in decorators(scope):
        @decorate
        async def work(name):
            for _ in range(3):
                seen.append((name, flags()))
                await asyncio.sleep(0)
            return name

        async def main():
            async def watch():
                for _ in range(3):
                    seen.append(("loop", flags()))
                    await asyncio.sleep(0)

            return await asyncio.gather(work("a"), work("b"), watch())

        assert inspect.iscoroutinefunction(work)
        assert asyncio.run(main()) == ["a", "b", None]
        assert seen == [("a", inside), ("b", inside), ("loop", (False, False))] * 3
        seen.clear()
    assert flags() == (False, False)


def test_decorated_coroutine_raises():
    @cg.record
    async def work():
        await asyncio.sleep(0)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        asyncio.run(work())
    assert flags() == (False, False)


@pytest.mark.parametrize("scope, recording, training", BARE)
def test_decorated_asynchronous_generator(scope, recording, training):
    inside = expected((False, False), recording, training)
    for decorate in decorators(scope):
        @decorate
        async def generate(n):
            for i in range(n):
                await asyncio.sleep(0)
                yield i, flags()

        async def main():
            seen = []
            async for item in generate(3):
                seen.append((*item, flags()))
            return seen

        assert asyncio.run(main()) == [(i, inside, (False, False)) for i in range(3)]


def test_asynchronous_generator_keeps_its_flags_while_suspended():
    @cg.record
    async def generate():
        with cg.pause():
            yield flags()
            yield flags()
        cg.set_training(False)
        got = yield flags()
        yield got, flags()

    async def main():
        g = generate()
        seen = []
        for _ in range(3):
            seen.append(await anext(g))
            assert flags() == (False, False)
        assert seen == [(False, False), (False, False), (True, False)]
        assert await g.asend("sent") == ("sent", (True, False))
        await g.aclose()

    asyncio.run(main())


def test_asynchronous_generator_is_closed():
    seen = []

    @cg.record
    async def generate():
        try:
            yield 1
            yield 2
        except KeyError:
            seen.append("thrown")
            yield 3
        finally:
            seen.append(flags())

    async def main():
        g = generate()
        assert await anext(g) == 1
        assert await g.athrow(KeyError()) == 3
        await g.aclose()
        assert seen == ["thrown", (True, True)] and flags() == (False, False)

    asyncio.run(main())


# ---- recording -------------------------------------------------------------------------------------------------------

def test_recorded_only_while_recording_and_from_variables():
    x, y = cg.tensor([1.0, 2.0]).attach_grad(), cg.tensor([1.0, 2.0])
    outside = x * y
    with cg.record():
        inside, plain = x * y, y * y
        with cg.pause():
            paused = x * y
        after = inside + 1
        still = outside * 2
        null = cg.tensor([1.0]).attach_grad("null") * 2
    assert inside.requires_grad and after.requires_grad
    assert [t.requires_grad for t in (outside, plain, paused, still, null)] == [False] * 5
    assert inside.grad_fn.name() == "mul" and outside.grad_fn is None
    more = inside * 3
    assert not more.requires_grad


def test_integers_are_not_recorded():
    x = cg.tensor([1.0, 2.0]).attach_grad()
    with cg.record() as tape:
        y = x > 1
        z = x.astype("int64")
    assert not y.requires_grad and not z.requires_grad and tape.nodes == 0


# ---- the tape --------------------------------------------------------------------------------------------------------

def test_tape_says_what_is_held_right_now():
    x = cg.tensor([1.0, 2.0, 3.0], dtype="float64").attach_grad()
    with cg.record() as tape:
        assert (tape.nodes, tape.saved_bytes) == (0, 0)
        a = cg.exp(x)
        assert (tape.nodes, tape.saved_bytes) == (1, 24)
        b = a * a
        assert (tape.nodes, tape.saved_bytes) == (2, 24)
        c = cg.exp(b)
        assert (tape.nodes, tape.saved_bytes) == (3, 48)
    del a, b
    assert (tape.nodes, tape.saved_bytes) == (3, 48)
    c.backward()
    assert tape.saved_bytes == 0
    del c
    assert (tape.nodes, tape.saved_bytes) == (0, 0)


def test_tape_counts_what_nests_and_what_goes_on():
    x = cg.tensor([1.0, 2.0], dtype="float64").attach_grad()
    with cg.record() as outer:
        a = cg.exp(x)
        with cg.record() as inner:
            b = cg.exp(a)
            with cg.pause(), cg.enable_grad():
                c = cg.exp(b)
        assert (inner.nodes, inner.saved_bytes) == (2, 32)
        assert (outer.nodes, outer.saved_bytes) == (3, 48)
        del inner
        d = cg.exp(c)
        assert (outer.nodes, outer.saved_bytes) == (4, 64)
    with cg.enable_grad():
        e = cg.exp(d)
    assert outer.nodes == 4
    with cg.record() as other:
        pass
    assert other.nodes == 0 and e.requires_grad


def test_tape_of_a_scope_entered_again():
    x = cg.tensor([1.0]).attach_grad()
    scope = cg.record()
    with scope as first:
        a = x * x
    with scope as second:
        b = x * x
        c = b * x
    assert (first.nodes, second.nodes) == (1, 2)
    assert a.shape == c.shape


def test_tape_outlives_nothing():
    x = cg.tensor([1.0, 2.0]).attach_grad()
    with cg.record() as tape:
        y = x * x
    del x
    y.backward()
    del y
    assert tape.nodes == 0 and cg.memory.stats()["live_bytes"] == 0


# ---- set_grad_enabled ------------------------------------------------------------------------------------------------

def grad_mode_programs(set_enabled, enabled):
    """What PyTorch's function, context manager and decorator leave and restore."""
    seen = []
    note = lambda: seen.append(enabled())           # noqa: E731
    set_enabled(True)
    note()
    set_enabled(False)
    note()
    with set_enabled(True):
        note()
        with set_enabled(False): note()
        note()
    note()
    scope = set_enabled(True)                       # made, then entered
    note()
    with scope: note()
    note()
    with pytest.raises(KeyError), set_enabled(True):
        set_enabled(False)
        note()
        raise KeyError
    note()
    decorated = set_enabled(True)(lambda: note() or 7)
    note()
    assert decorated() == decorated() == 7

    @set_enabled(True)
    def steps():
        note()
        yield 1
        note()

    note()
    for _ in steps(): note()
    set_enabled(False)
    return seen


def test_set_grad_enabled_as_in_pytorch():
    torch = pytest.importorskip("torch")
    before = torch.is_grad_enabled()
    try: expected = grad_mode_programs(torch.set_grad_enabled, torch.is_grad_enabled)
    finally: torch.set_grad_enabled(before)
    assert grad_mode_programs(cg.set_grad_enabled, cg.is_grad_enabled) == expected
    assert expected[:10] == [True, False, True, False, True, False, True, True, False, False]


def test_set_grad_enabled_leaves_the_mode_and_opens_no_tape():
    with cg.predict_mode(), cg.set_grad_enabled(True) as tape:
        assert tape is None and flags() == (True, False)
    scope = cg.set_grad_enabled(True)
    cg.set_recording(False)
    with scope: assert cg.is_recording()
    cg.set_recording(True)
    with scope: assert cg.is_recording()
    assert cg.set_recording(False)                  # entered again: what it finds is restored
    for wrong in (None, 1, "yes", print):
        with pytest.raises(TypeError, match="set_grad_enabled: mode must be True or False"): cg.set_grad_enabled(wrong)
    with pytest.raises(TypeError, match="a scope can decorate only functions"): cg.set_grad_enabled(True)(3)
    assert not cg.is_recording()


def test_set_grad_enabled_in_another_thread():
    seen = []

    def work():
        with cg.set_grad_enabled(True): seen.append(flags())
        seen.append(flags())
        cg.set_grad_enabled(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [(True, False), (False, False)] and not cg.is_recording()
