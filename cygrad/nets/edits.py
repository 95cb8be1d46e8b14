"""Changes of a net that has operators: other names, fewer operators, other connections."""

from cygrad.core.errors import cut, described
from cygrad.nets.blobs import Blobs
from cygrad.nets.definition import Blob, Operator, check_name


class Edits(Blobs):
    """The part of Net that changes what was added."""

    def rename(self, blob: str, new: str) -> Blob:
        """Give a blob another name, everywhere in the net. Raises ValueError if there is none of the old name, or one
        of the new."""
        who, s = "Net.rename", self._state
        old, renamed = s.need(blob, who), check_name(new, who, "the new name")
        if renamed in s.known:
            raise ValueError(f"{who}: net {cut(s.name)} has a blob {described(str(renamed))} already; choose another "
                             f"name")
        s.rename(old, renamed)
        return renamed

    def remove_operator(self, operator: Operator) -> None:
        """Remove an operator: this one, or else the first that is equal. Raises ValueError if the net does not have it,
        or if an assigned output would no longer exist."""
        who, s = "Net.remove_operator", self._state
        if not isinstance(operator, Operator):
            raise TypeError(f"{who} takes an operator of net.operators, got {described(operator)}")
        k = next((k for k, o in enumerate(s.operators) if o is operator), None)
        if k is None:
            if operator not in s.operators:
                raise ValueError(f"{who}: net {cut(s.name)} does not have the operator {cut(repr(operator))}")
            k = s.operators.index(operator)
        rest = s.operators[:k] + s.operators[k + 1:]
        s.refuse_breaking(rest, who)
        known = s.names_with(rest)
        for name in s.assigned or ():
            if name not in known:
                raise ValueError(f"{who}: the output {described(str(name))} would no longer exist; insert another "
                                 f"operator that writes it first, or assign net.outputs")
        s.replace(rest)

    def unlink(self, blob: str) -> Blob:
        """Make a blob an input, and remove the operators that nothing else needs. (nnabla: get_unlinked_variable.)
        The arguments of a captured function stay inputs. Raises ValueError if no operator writes it, or several do,
        and RuntimeError if the net has gradient operators."""
        who, s = "Net.unlink", self._state
        name = self._writer_of(blob, who)
        self._refuse_output(name, who)
        s.replace(self._without(name, s.operators, who))
        return name

    def rewire(self, blob: str, on: str) -> Blob:
        """Let all operators that read `blob` read the blob `on` instead, and remove the operators that nothing needs
        any more. Returns `on`. (nnabla: rewire_on.) Raises ValueError if several operators write one of the two, if
        `on` is written after an operator that reads `blob`, or if `blob` is an assigned output, and RuntimeError if the
        net has gradient operators."""
        who, s = "Net.rewire", self._state
        name, other = s.need(blob, who), s.need(on, who)
        if s.use().writers.get(name): self._writer_of(name, who)
        written = s.use().writers.get(other, (-1,))
        if len(written) > 1: self._writer_of(other, who)
        reads = s.use().readers.get(name, ())
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
                     for o in s.operators]
        if s.use().writers.get(name): operators = self._without(name, operators, who)
        s.replace(operators)
        return other

    def _writer_of(self, blob: str, who: str) -> Blob:
        """A blob that one operator writes."""
        s = self._state
        name = s.need(blob, who)
        n = len(s.use().writers.get(name, ()))
        self._refuse_gradients(who)
        if n == 1: return name
        what = f"{n} operators write {described(str(name))}" if n else f"no operator writes {described(str(name))}"
        raise ValueError(f"{who}: {what} of net {cut(s.name)}; wanted a blob that one operator writes")

    def _refuse_gradients(self, who: str) -> None:
        s = self._state
        gradient = next((o for o in s.operators if o.is_gradient), None)
        if gradient is not None:
            raise RuntimeError(f"{who}: net {cut(s.name)} has the gradient operator {cut(repr(gradient))}, which "
                               f"is for the connections as they are; change them before add_gradient_operators()")

    def _refuse_output(self, blob: str, who: str) -> None:
        s = self._state
        if s.assigned is not None and blob in s.assigned:
            raise ValueError(f"{who}: {described(str(blob))} is an assigned output, which would no longer exist; "
                             f"assign net.outputs first")

    def _without(self, blob: str, operators: list[Operator], who: str) -> list[Operator]:
        """The operators without the one that writes `blob`, and without those that only it needed."""
        kept: list[Operator] = []
        dead, needed = {blob}, {str(name) for name in self._state.assigned or ()}
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
