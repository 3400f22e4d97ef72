"""Heads: the log-probabilities or the mean of the value that a program observes, as a deterministic function."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Literal

from qvr_core.arrays.engine import Tensor, arrays, nn
from qvr_core.runtime.arrows.kernel import KernelArrow
from qvr_core.runtime.arrows.lifting import LiftArrow
from qvr_core.runtime.arrows.summation import stages_of
from qvr_core.runtime.programs.arrow_site import ArrowSite
from qvr_core.runtime.programs.execution import Execution
from qvr_core.runtime.programs.handlers import argument_of, condition, densities
from qvr_core.runtime.programs.naming import Naming
from qvr_core.runtime.programs.steps import Step
from qvr_core.runtime.values.arrow import ArrowModule, Value
from qvr_core.runtime.values.errors import RuntimeProblem
from qvr_core.runtime.values.layout import parts
from qvr_core.semantics.types.deterministic import reads_of_drawn

What = Literal["logits", "mean"]
HEADS = ("logits", "mean")


class Heads(Naming):
    """The heads of a program module: `logits` and `mean`, unless the program has arrows of these names."""

    steps: list[Step]
    drawn_weights: list[str]

    input: Callable[[object], Value | None]
    run: Callable[..., Execution]
    taken: Callable[[Any], dict[str, Any]]

    def head_logits(self, x: object = None, observations: Mapping[str, Any] | None = None, *, site: str = "") -> Tensor:
        """log p of each value of a finite site given the input, (B, n), or (B, L, n) along a sequence.

        Finite values on the way are summed out.  `site` is the one observed step by default; `observations` are data
        and values of other steps.  Raises `RuntimeProblem` where the site is not drawn from an arrow to a finite set,
        or something random stands in front of it.
        """
        found, argument = self._head(x, observations, site)
        if not _body(found).tabular:
            raise self._no_head(found.name, "has no finite set of values: `mean(x)` says what to expect")
        if isinstance(found.lift, LiftArrow):
            return found.lift.log_table_by_position(argument)
        return found.module.log_table(argument)[0]

    def head_mean(self, x: object = None, observations: Mapping[str, Any] | None = None, *, site: str = "") -> Tensor:
        """E[y | x] of a site drawn from an arrow, (B, …) as its values are; as `logits` otherwise.

        Raises `RuntimeProblem` where the family has no mean, or none that is known in closed form.
        """
        found, argument = self._head(x, observations, site)
        *before, last = stages_of(found.module.body[0] if isinstance(found.module, LiftArrow) else found.module)
        if not isinstance(last, KernelArrow) or last.tabular:
            raise self._no_head(found.name, "is not drawn from a kernel to numbers: `logits(x)` has its probabilities")
        lead, value = None, argument
        if isinstance(found.module, LiftArrow):
            lead = tuple(parts(argument)[0].shape[: found.module.depth])
            value = found.module._rows(argument)  # pyright: ignore[reportPrivateUsage]
        for stage in before:
            value = stage(value)
        expected = last.head.mean(last.params(value))
        if expected is None:
            raise self._no_head(found.name, f"is drawn from {last.head.family.name}, whose mean has no closed form")
        return expected if lead is None else arrays.unflatten(expected, 0, lead)

    def as_module(self, what: What = "logits", *, site: str = "") -> nn.Module:
        """`logits` or `mean` as a module of its own, for `torch.export` and ONNX: its `forward(x)` takes the input,
        a product as so many tensors."""
        return HeadModule(self, what, site)

    def _head(self, x: object, observations: Mapping[str, Any] | None, name: str) -> tuple[ArrowSite, Value]:
        """A site, and what its arrow is applied to.  Raises `RuntimeProblem`."""
        site = self._site(name)
        given = self.taken(observations)
        self.check_names(given, "observations")
        behind = next(iter(self._random_behind(site, given)), None)
        if behind is not None:
            raise self._no_head(site.name, f"reads `{behind}`, which is drawn: `Predictive` averages over its draws")
        argument = self.run(self.input(x), condition(given), densities(False), argument_of(site.name)).output
        inner = [spec.path for spec in site.module.noise_specs(argument) if not spec.final]
        if inner:
            raise self._no_head(site.name, f"has the draw `{inner[0]}` inside: `Predictive` averages over its draws")
        return site, argument

    def _random_behind(self, site: ArrowSite, given: Collection[str]) -> Iterator[str]:
        """What is drawn, and not given, that the argument of a site depends on; weights with a prior among it."""
        yield from (name for name in self.drawn_weights if name not in given)
        reads, sites = reads_of_drawn(self.program), self._arrow_sites()
        left = sorted(reads[site.name].difference(given))
        while left:
            read = left.pop()
            source = next((step for step in sites if read in _bound(step)), None)
            if source is None or source.module.sampled:
                yield read
            else:
                left += sorted(reads[source.name].difference(given))

    def _site(self, name: str) -> ArrowSite:
        """The site of a name; the one that is observed by default."""
        drawn = [step for step in self._arrow_sites() if step.module.sampled]
        found = [s for s in drawn if s.name == name] if name else [s for s in drawn if s.kind == "observe"] or drawn
        if len(found) == 1:
            return found[0]
        if name or not found:
            raise self.unknown(f"`{self.name}` has no step drawn from an arrow", name, [s.name for s in drawn])
        words = ", ".join(f"`{s.name}`" for s in found)
        raise self.placed(RuntimeProblem(f"`{self.name}` observes {words}: say which by `site=`", site=found[0].name))

    def _arrow_sites(self) -> list[ArrowSite]:
        return [step for step in self.steps if isinstance(step, ArrowSite)]

    def _no_head(self, name: str, words: str) -> RuntimeProblem:
        return self.placed(RuntimeProblem(f"`{self.name}`: `{name}` {words}", site=name))


class HeadModule(nn.Module):
    """A head of a program; its parameters are the program's."""

    def __init__(self, model: Any, what: What, site: str) -> None:
        super().__init__()
        self.model = model
        self.what = what
        self.site = site
        self.train(model.training)

    def forward(self, *x: Tensor) -> Tensor:
        """What `model.logits` or `model.mean` gives."""
        return getattr(self.model, f"head_{self.what}")(x[0] if len(x) == 1 else tuple(x) or None, site=self.site)


def _body(site: ArrowSite) -> ArrowModule:
    return site.module if site.lift is None else site.lift.body[0]


def _bound(site: ArrowSite) -> list[str]:
    return [name for name, _ in site.site.bound]
