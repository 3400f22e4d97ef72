"""Leaves: the modules that hold parameters, registered once under their declared names.

A combinator keeps its parts unregistered and registers the leaves below it in one flat tree of names, so that a
parameter is called `fwd_cell.hidden.weight` or `enc_block.0.enc_head_2.output.bias` wherever it is looked at from, and
a leaf that is used twice appears once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from qvr_core.arrays.engine import nn
from qvr_core.runtime.values.arrow import ArrowModule


class Namespace(nn.Module):
    """Stands for the dots in a leaf's name."""


def leaves_of(arrow: nn.Module) -> Mapping[str, nn.Module]:
    """The leaves that `arrow` uses, by their full names in order of first use."""
    return getattr(arrow, "leaves", {})


def adopt(owner: ArrowModule, arrows: Iterable[nn.Module], extra: Mapping[str, nn.Module] | None = None) -> None:
    """Register the leaves of `arrows` in `owner`, and `extra` ones of its own."""
    leaves: dict[str, nn.Module] = {}
    for arrow in arrows:
        leaves.update(leaves_of(arrow))
    leaves.update(extra or {})
    owner.leaves = leaves
    register(owner, leaves)


def register(owner: nn.Module, leaves: Mapping[str, nn.Module]) -> None:
    """Register leaves under `owner` by their dotted names; a name that is taken (`train`, `type`) gets a `_`."""
    for name, leaf in leaves.items():
        home = owner
        *path, last = name.split(".")
        for part in path:
            part = _free(home, part)
            if part not in dict(home.named_children()):
                home.add_module(part, Namespace())
            home = home.get_submodule(part)
        home.add_module(_free(home, last), leaf)


def _free(home: nn.Module, name: str) -> str:
    while hasattr(home, name) and name not in dict(home.named_children()):
        name += "_"
    return name
