"""Changes of a net that has operators: other names, fewer operators, other connections."""

from cygrad.core.errors import cut, described
from cygrad.nets.blobs import Blobs
from cygrad.nets.definition import Blob, Operator, check_name
from cygrad.nets.gradients import find, renamed_gradients, renamed_pass


class Edits(Blobs):
    """The part of Net that changes what was added."""

    def rename(self, blob: str, new: str) -> Blob:
        """Give a blob another name, everywhere in the net. Raises ValueError if there is none of the old name, or one
        of the new."""
        who = "Net.rename"
        old, new = self._need(blob, who), check_name(new, who, "the new name")
        if new in self._known:
            raise ValueError(f"{who}: net {cut(self._name)} has a blob {described(str(new))} already; choose another "
                             f"name")

        def renamed(names): return tuple(new if name == old else name for name in names)

        made: dict[int, Operator] = {}              # by the ids of the operators before
        for k, o in enumerate(self._operators):
            if old in o.inputs or old in o.outputs or id(o.of) in made:
                made[id(o)] = self._operators[k] = o.replace(inputs=renamed(o.inputs), outputs=renamed(o.outputs),
                                                             of=made.get(id(o.of), o.of))
        self._passes = tuple(renamed_pass(p, made, {old: new}) for p in self._passes)
        if self._gradients is not None:
            self._gradients = renamed_gradients(self._gradients, {old: new})
        self._given = {*renamed(self._given)}
        if self._shared is not None: self._shared = frozenset(renamed(self._shared))
        self._bindings = {new if name == old else name: x for name, x in self._bindings.items()}
        self._variables = {*renamed(self._variables)}
        self._constants = {new if name == old else name: value for name, value in self._constants.items()}
        self._numbers = {text: new if name == old else name for text, name in self._numbers.items()}
        if self._outputs is not None: self._outputs = renamed(self._outputs)
        if old in self.shapes: self.shapes[new] = self.shapes.pop(old)
        self._known = self._known - {old} | {new}
        self._edits += 1
        return new

    def remove_operator(self, operator: Operator) -> None:
        """Remove an operator: this one, or else the first that is equal. Raises ValueError if the net does not have it,
        or if an assigned output would no longer exist."""
        who = "Net.remove_operator"
        if not isinstance(operator, Operator):
            raise TypeError(f"{who} takes an operator of net.operators, got {described(operator)}")
        k = next((k for k, o in enumerate(self._operators) if o is operator), None)
        if k is None:
            if operator not in self._operators:
                raise ValueError(f"{who}: net {cut(self._name)} does not have the operator {cut(repr(operator))}")
            k = self._operators.index(operator)
        rest = self._operators[:k] + self._operators[k + 1:]
        self._refuse_breaking(rest, who)
        known = {name for o in rest for name in (*o.inputs, *o.outputs) if name is not None} | {*self._constants}
        for name in self._outputs or ():
            if name not in known:
                raise ValueError(f"{who}: the output {described(str(name))} would no longer exist; insert another "
                                 f"operator that writes it first, or assign net.outputs")
        self._operators, self._known = rest, known
        self._edits += 1

    def unlink(self, blob: str) -> Blob:
        """Make a blob an input, and remove the operators that nothing else needs. (nnabla: get_unlinked_variable.)
        The arguments of a captured function stay inputs. Raises ValueError if no operator writes it, or several do,
        and RuntimeError if the net has gradient operators."""
        who = "Net.unlink"
        name = self._writer_of(blob, who)
        self._refuse_output(name, who)
        self._operators = self._without(name, self._operators, who)
        self._forget_removed()
        return name

    def rewire(self, blob: str, on: str) -> Blob:
        """Let all operators that read `blob` read the blob `on` instead, and remove the operators that nothing needs
        any more. Returns `on`. (nnabla: rewire_on.) Raises ValueError if several operators write one of the two, if
        `on` is written after an operator that reads `blob`, or if `blob` is an assigned output, and RuntimeError if the
        net has gradient operators."""
        who = "Net.rewire"
        name, other = self._need(blob, who), self._need(on, who)
        if self._use().writers.get(name): self._writer_of(name, who)
        written = self._use().writers.get(other, [-1])
        if len(written) > 1: self._writer_of(other, who)
        reads = self._use().readers.get(name, [])
        self._refuse_gradients(who)
        if other == name: return other
        if not reads:
            raise ValueError(f"{who}: no operator reads {described(str(name))}; wanted a blob that operators read")
        self._refuse_output(name, who)
        if reads[0] <= written[0]:
            raise ValueError(f"{who}: {described(str(other))} is written by operator {written[0]}, after operator "
                             f"{reads[0]} reads {described(str(name))}; add the operators of {described(str(other))} "
                             f"first, with insert_operator()")
        operators = [o.replace(inputs=[other if n == name else n for n in o.inputs]) if name in o.inputs else o
                     for o in self._operators]
        if self._use().writers.get(name): operators = self._without(name, operators, who)
        self._operators = operators
        self._forget_removed()
        return other

    def _writer_of(self, blob: str, who: str) -> Blob:
        """A blob that one operator writes."""
        name = self._need(blob, who)
        n = len(self._use().writers.get(name, ()))
        self._refuse_gradients(who)
        if n == 1: return name
        what = f"{n} operators write {described(str(name))}" if n else f"no operator writes {described(str(name))}"
        raise ValueError(f"{who}: {what} of net {cut(self._name)}; wanted a blob that one operator writes")

    def _refuse_gradients(self, who: str) -> None:
        gradient = next((o for o in self._operators if o.is_gradient), None)
        if gradient is not None:
            raise RuntimeError(f"{who}: net {cut(self._name)} has the gradient operator {cut(repr(gradient))}, which "
                               f"is for the connections as they are; change them before add_gradient_operators()")

    def _refuse_breaking(self, operators: list[Operator], who: str) -> None:
        """Raise RuntimeError if the operators of the net became these and a pass that writes .grad would be broken: its
        operators, run one by one, would not write there."""
        now, new = tuple(self._operators), tuple(operators)
        for p in self._passes:
            if p.kind != "backward" or (at := find(now, p)) is None or find(new, p) is not None: continue
            raise RuntimeError(f"{who}: the backward pass that begins at operator {at} of net {cut(self._name)} writes "
                               f".grad, and is for all operators before it as they are; change the function and "
                               f"capture it again, or change the net before add_gradient_operators()")

    def _refuse_output(self, blob: str, who: str) -> None:
        if self._outputs is not None and blob in self._outputs:
            raise ValueError(f"{who}: {described(str(blob))} is an assigned output, which would no longer exist; "
                             f"assign net.outputs first")

    def _without(self, blob: str, operators: list[Operator], who: str) -> list[Operator]:
        """The operators without the one that writes `blob`, and without those that only it needed."""
        kept: list[Operator] = []
        dead, needed = {blob}, {str(name) for name in self._outputs or ()}
        for o in reversed(operators):
            inplace = blob not in o.outputs and any(n in o.inputs for n in o.outputs)   # (others may see the write)
            if o.outputs and not inplace and all(n == blob or (n in dead and n not in needed) for n in o.outputs):
                dead |= {n for n in o.inputs if n is not None}
                continue
            if blob in o.outputs:
                raise ValueError(f"{who}: the operator {cut(repr(o))} has other outputs, so it cannot be removed; "
                                 f"unlink or rewire a blob that is the only output")
            kept.append(o)
            needed |= {n for n in o.inputs if n is not None}
        return kept[::-1]

    def _forget_removed(self) -> None:
        """After the removal of operators."""
        self._known = {n for o in self._operators for n in (*o.inputs, *o.outputs) if n is not None}
        self._known |= {*self._constants, *self._arguments, *self._bindings}
        self._given &= self._known
        self._edits += 1
