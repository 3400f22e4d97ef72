"""The combinators, and what follows an arrow's dot: the one list that the checker, the editors and the docs read.

`syntax/lexer.py` has their names as well: it knows nothing of this layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from qvr_core.semantics.types.model.arrows import (
    Arrow,
    Fan,
    FromData,
    Identity,
    Last,
    MeanOverTime,
    Repeat,
    Residual,
    Scan,
    Stack,
)
from qvr_core.syntax.immutable import immutable


@immutable
class Combinator:
    """A combinator: its node of the model, how it is called, what it requires, what it gives, how weights are shared,
    and what completion writes.

    `words` are its keyword arguments with the words that each takes; an `endomorphism` takes an arrow from a space to
    itself.
    """

    name: str
    node: type[Arrow]
    call: str
    summary: str
    rule: str
    weights: str
    parameters: tuple[tuple[str, str], ...] = ()
    snippet: str = ""
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    endomorphism: bool = False

    @property
    def bare(self) -> bool:
        """Whether it stands without brackets."""
        return self.call == self.name


COMBINATORS: Mapping[str, Combinator] = {
    combinator.name: combinator
    for combinator in (
        Combinator(
            "fan",
            Fan,
            "fan(f1, …, fn)",
            "Feeds one input to every branch and puts their results side by side.",
            "f_i : A ~ B_i give A ~ B_1 * … * B_n",
            "shared",
            (("f1", "the first branch"), ("f2, …", "further branches, all with the same domain")),
            "fan(${1:f}, ${2:g})",
        ),
        Combinator(
            "scan",
            Scan,
            "scan(cell, emit=all, direction=backward, init=learned)",
            "Folds a cell over a sequence: the final state, or with `emit=all` every state.",
            "cell : A * S ~ S gives Seq A ~ S",
            "shared over time",
            (
                ("cell", "an arrow A * S ~ S"),
                ("emit", "`all` gives every state, Seq A ~ Seq S"),
                ("direction", "`forward` (default) or `backward`: reads the sequence from its end"),
                ("init", "`learned` makes the start state a parameter; zeros otherwise"),
            ),
            "scan(${1:cell})",
            {"emit": ("all", "last", "final"), "direction": ("forward", "backward"), "init": ("learned", "zeros")},
        ),
        Combinator(
            "stack",
            Stack,
            "stack(f, n)",
            "n fresh copies of an arrow, one after the other.",
            "f : A ~ A gives A ~ A",
            "n separate copies, separately initialised",
            (("f", "an arrow from a space to itself"), ("n", "how many layers, from 1")),
            "stack(${1:f}, ${2:2})",
            endomorphism=True,
        ),
        Combinator(
            "repeat",
            Repeat,
            "repeat(f, n)",
            "The same arrow n times; without n the count comes at run time as `n_steps=`.",
            "f : A ~ A gives A ~ A",
            "shared",
            (("f", "an arrow from a space to itself"), ("n", "how many times")),
            "repeat(${1:f}, ${2:2})",
            endomorphism=True,
        ),
        Combinator(
            "residual",
            Residual,
            "residual(f)",
            "Adds the input to the result: x + f(x).",
            "f : A => A gives A => A",
            "shared",
            (("f", "a deterministic arrow from a space to itself"),),
            "residual(${1:f})",
            endomorphism=True,
        ),
        Combinator(
            "identity",
            Identity,
            "identity(A)",
            "Gives its input back.",
            "A => A",
            "none",
            (("A", "an object"),),
            "identity(${1:A})",
        ),
        Combinator("last", Last, "last", "The last element of a sequence.", "Seq A => A", "none"),
        Combinator(
            "mean_over_time", MeanOverTime, "mean_over_time", "The mean over the length axis.", "Seq A => A", "none"
        ),
        Combinator(
            "from_data",
            FromData,
            'from_data("name")',
            "A tensor that is supplied at run time under a name.",
            "a tensor arrow",
            "none",
            (("name", "the data's name, in quotes"),),
            'from_data("${1:name}")',
        ),
    )
}

POSTFIX: Mapping[str, tuple[str, str]] = {
    "dagger": ("f.dagger", "The transposed tensor arrow: A -o B gives B -o A."),
    "change_base": (
        "f.change_base(t)",
        "Every weight mapped by a transformation: the arrow in another composition.",
    ),
    "curry_left": (
        "f.curry_left",
        "The same weights with the first factor of the domain in front of the codomain: A * B -o C gives B -o A * C.",
    ),
    "curry_right": (
        "f.curry_right",
        "The same weights with the last factor of the domain in front of the codomain: A * B -o C gives A -o B * C.",
    ),
    "trace": ("f.trace(X)", "Joins X out of both sides: A * X -o B * X gives A -o B."),
    "marginalize": ("f.marginalize(X)", "Joins X out of the codomain."),
    "freeze": ("f.freeze", "The same arrow; no gradient reaches its parameters."),
}
