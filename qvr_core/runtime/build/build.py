"""From the typed model to modules: one `match` over every arrow node."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from qvr_core.arrays.engine import Tensor
from qvr_core.runtime.arrows.attention import AttentionArrow, PositionArrow
from qvr_core.runtime.arrows.batch_norm import BatchNormArrow
from qvr_core.runtime.arrows.combinators import ParallelArrow, ResidualArrow, TakeFactorArrow
from qvr_core.runtime.arrows.compiled_scan import CompiledScan
from qvr_core.runtime.arrows.convolution import ConvArrow, PoolArrow
from qvr_core.runtime.arrows.discretize import DiscretizeArrow
from qvr_core.runtime.arrows.drawn_weights import with_prior
from qvr_core.runtime.arrows.dropout import DropoutArrow
from qvr_core.runtime.arrows.freezing import FrozenArrow
from qvr_core.runtime.arrows.kernel import KernelArrow
from qvr_core.runtime.arrows.layers import EmbedArrow, LinearArrow, NormArrow
from qvr_core.runtime.arrows.lifting import lifted
from qvr_core.runtime.arrows.normal_scan import NormalScan, normal_kernel, side_by_side
from qvr_core.runtime.arrows.parameter_free import IdentityArrow, LastArrow, MeanOverTimeArrow
from qvr_core.runtime.arrows.repetition import RepeatArrow
from qvr_core.runtime.arrows.scan import ScanArrow, StartState
from qvr_core.runtime.arrows.summation import compose
from qvr_core.runtime.arrows.terms_in_parts import apart, in_branches, in_steps
from qvr_core.runtime.arrows.training import training_layers
from qvr_core.runtime.build.build_tensors import tensor_arrow
from qvr_core.runtime.build.declared_algebras import algebra_named, transformation_named
from qvr_core.runtime.programs.declared.decoders import DecoderArrow
from qvr_core.runtime.programs.declared.encoders import EncoderArrow
from qvr_core.runtime.programs.declared.families import declared_family
from qvr_core.runtime.tensors.algebras import Algebra
from qvr_core.runtime.tensors.transformations import Map
from qvr_core.runtime.values.arrow import ArrowModule
from qvr_core.runtime.values.errors import RuntimeProblem, TooLarge
from qvr_core.runtime.values.layout import factors
from qvr_core.runtime.values.leaves import leaves_of
from qvr_core.semantics.arrows.own_arrows import OwnArrow
from qvr_core.semantics.types.counted import heads
from qvr_core.semantics.types.model.arrows import (
    Arrow,
    Attention,
    BatchNorm,
    Compose,
    Conv,
    Discretize,
    Dropout,
    Embed,
    Fan,
    Freeze,
    Identity,
    Instance,
    Kernel,
    Last,
    Latent,
    Lift,
    LinearMap,
    MeanOverTime,
    Norm,
    Observed,
    Pool,
    Position,
    Ref,
    Repeat,
    Residual,
    Scan,
    Sort,
    Stack,
    TakeFactor,
    TermArrowBase,
)
from qvr_core.semantics.types.model.arrows import Tensor as ModelTensor
from qvr_core.semantics.types.model.families import DeclaredFamily
from qvr_core.semantics.types.model.file import Model
from qvr_core.semantics.types.model.programs import Program, called
from qvr_core.semantics.types.model.terms import Decoder

if TYPE_CHECKING:
    from qvr_core.runtime.loops.loop import Loop

ProgramFactory = Callable[[Program, "Builder"], ArrowModule]
"""Builds a program: given by the layer above, so that arrows know nothing of steps."""


NO_MEMORY = re.compile(r"tried to allocate (\d+) bytes")


class Builder:
    """Builds the arrows of one file.

    A declared name is built once, so that using it twice shares its parameters; a `stack` builds its body in fresh
    scopes, whose names are prefixed (`enc_block.0.enc_head_2`).  `data` holds what `from_data` and observed tensors
    read.  Parameters are initialised from torch's global generator in the order of first use.
    """

    def __init__(
        self, model: Model, data: Mapping[str, Tensor] | None = None, program: ProgramFactory | None = None
    ) -> None:
        self.model = model
        self.data: Mapping[str, Tensor] = data if data is not None else {}
        self.program = program
        self.prefix = ""
        self.root = self
        self._built: dict[str, ArrowModule] = {}
        self._taken: set[str] = set(model.arrows) | set(model.lets) | set(model.programs) | set(model.term_arrows)
        self._stacked: set[str] = set()
        self._instances: dict[int, tuple[Instance, ArrowModule]] = {}
        self._own: dict[int, tuple[Arrow, ArrowModule]] = {}
        """What the calls of templates make, by the very nodes: two calls may be written alike."""
        self._calls: dict[int, str] = {}
        """What the call that makes an arrow is called."""

    def named(self, name: str) -> ArrowModule:
        """The arrow of a declared morphism, let or program; the same module at each call."""
        if name not in self._built:
            self._built[name] = self._declared(name)
        return self._built[name]

    def _declared(self, name: str) -> ArrowModule:
        if name in self.model.arrows:
            return self._new_module(self.model.arrows[name])
        if name in self.model.lets:
            return self.arrow(self.model.lets[name].arrow)
        if name in self.model.programs:
            return self.built(self.model.programs[name])
        if name in self.model.term_arrows:
            declared = self.model.term_arrows[name]
            return DecoderArrow(declared, self) if isinstance(declared, Decoder) else EncoderArrow(declared, self)
        raise RuntimeProblem(f"`{name}` is not an arrow of this file")

    def built(self, program: Program) -> ArrowModule:
        """The module of a program."""
        if self.program is None:
            raise RuntimeProblem(f"program `{program.name}` cannot be built here")
        return self.program(program, self)

    def arrow(self, node: Arrow) -> ArrowModule:
        """The module of an arrow expression, that of its name where it is what a declaration says.

        Raises `TooLarge` where the memory does not hold its weights.
        """
        declared = None if isinstance(node, Ref) else getattr(node, "name", None)
        if declared is not None and self.model.arrows.get(declared) is node:
            return self.named(declared)
        return self._new_module(node)

    def _new_module(self, node: Arrow) -> ArrowModule:
        try:
            if isinstance(node, OwnArrow) and self.model.arrows.get(node.name) is not node:
                return self._module_of_call(node)
            return self._module_of(node)
        except RuntimeError as error:
            wanted = NO_MEMORY.search(str(error))
            if wanted is None:
                raise
            name = getattr(node, "name", None)
            what = f"`{name}`" if name else f"an arrow {node.domain.written} -> {node.codomain.written}"
            message = f"{what} has weights of {int(wanted[1]):,} bytes, which the memory does not hold"
            raise TooLarge(message, site=name) from error

    def _module_of(self, node: Arrow) -> ArrowModule:
        if node.sort is Sort.TENSOR and not isinstance(node, Ref):
            tensor = tensor_arrow(node, self)
            return self._leaf(node.name, tensor) if isinstance(node, Latent | Observed) else tensor
        domain, codomain = node.domain, node.codomain
        match node:
            case Ref() | TermArrowBase():
                return self.named(node.name)
            case Embed():
                return self._leaf(node.name, with_prior(EmbedArrow(node), node))
            case Kernel():
                return self._kernel(node)
            case LinearMap():
                return self._leaf(node.name, with_prior(LinearArrow(node), node))
            case Conv():
                return self._leaf(node.name, ConvArrow(node))
            case Pool():
                return self._leaf(node.name, PoolArrow(node))
            case Norm():
                return self._leaf(node.name, NormArrow(node))
            case BatchNorm():
                return self._leaf(node.name, BatchNormArrow(node))
            case Dropout():
                return self._leaf(node.name, DropoutArrow(node))
            case Attention():
                return self._leaf(node.name, AttentionArrow(node))
            case Position():
                return self._leaf(node.name, PositionArrow(node, node.name))
            case Discretize():
                return self._leaf(node.name, DiscretizeArrow(node, self.prefix + node.name))
            case Freeze():
                return FrozenArrow(self.arrow(node.base))
            case Compose():
                return compose(apart([self.arrow(stage) for stage in node.stages]), domain, codomain)
            case ModelTensor():
                return ParallelArrow(apart([self.arrow(part) for part in node.factors]), domain, codomain, False)
            case Fan():
                branches = [self.arrow(part) for part in node.branches]
                return in_branches(branches, heads(node.branches), lambda each: side_by_side(each, domain, codomain))
            case Scan():
                return self._scan(node)
            case Stack():
                return in_steps(self.copies(node), lambda each: compose(each, domain, codomain))
            case Repeat():
                return RepeatArrow(self.arrow(node.body), node.count, domain, codomain)
            case Residual():
                return ResidualArrow(self.arrow(node.body), domain, codomain)
            case Lift():
                return lifted(self.arrow(node.arrow), domain, codomain)
            case Identity():
                return IdentityArrow(domain, codomain)
            case Last():
                return LastArrow(domain, codomain)
            case MeanOverTime():
                return MeanOverTimeArrow(domain, codomain)
            case TakeFactor():
                return TakeFactorArrow(self.arrow(node.base), node.index, domain, codomain)
            case Instance():
                return self._instance(node)
            case _:
                raise RuntimeProblem("this part of the program has errors: `qvr check` lists them")

    def deduction(self, name: str) -> object:
        """Operations of a composition read no deductions."""
        raise RuntimeProblem(f"deduction `{name}` cannot be used here")

    def _instance(self, node: Instance) -> ArrowModule:
        """The program of a template's call; what the call makes is called after it."""
        if id(node) not in self._instances:
            program = called(node)
            if program.own:
                call = self._free(node.name)
                self._calls.update((id(arrow), call) for arrow in program.own)
            self._instances[id(node)] = (node, self.built(program))
        return self._instances[id(node)][1]

    def _module_of_call(self, node: OwnArrow) -> ArrowModule:
        """An arrow that the call of a template makes, once."""
        if id(node) not in self._own:
            call = self._calls.get(id(node))
            name = self._free(node.name) if call is None else f"{call}.{node.name}"
            self._own[id(node)] = (node, self._module_of(replace(node, name=name)))
        return self._own[id(node)][1]

    def _free(self, name: str) -> str:
        """A name for what a call makes, which no other call and no declared arrow has."""
        candidate, count = name, 1
        while candidate in self._stacked or candidate in self.model.arrows or candidate in self.model.lets:
            count += 1
            candidate = f"{name}_{count}"
        self._stacked.add(candidate)
        return candidate

    def _kernel(self, node: Kernel) -> ArrowModule:
        """A kernel.  A matrix that it shares is that of the declared arrow, in each copy of a stack too."""
        tied = None if node.tie is None else self.root.named(node.tie.name)
        assert tied is None or isinstance(tied, EmbedArrow | LinearArrow)
        own = declared_family(node.declared, self) if isinstance(node.declared, DeclaredFamily) else None
        kernel = self._leaf(node.name, with_prior(KernelArrow(node, self.prefix + node.name, tied, own), node))
        if tied is not None:
            kernel.leaves = {**kernel.leaves, **leaves_of(tied)}
        return kernel

    def _leaf(self, name: str, arrow: ArrowModule) -> ArrowModule:
        arrow.leaves = {self.prefix + name: arrow}
        return arrow

    def _scan(self, node: Scan) -> ScanArrow:
        cell = self.arrow(node.cell)
        start, name = None, ""
        if node.learned_init:
            name = self._unique(f"{_name_of(node.cell) or 'scan'}_start")
            start = StartState(node)
        if isinstance(cell, KernelArrow) and normal_kernel(cell):
            return NormalScan(node, cell, start, name)
        if (loop := self._loop(node)) is not None:
            drops = any(layer.drop_rate for layer in training_layers([cell]))
            in_training = self._loop(node, training=True) if drops else loop
            if in_training is not None:
                return CompiledScan(node, cell, start, name, loop, in_training)
        return ScanArrow(node, cell, start, name)

    def _loop(self, node: Scan, *, training: bool = False) -> Loop | None:
        """The loop of a cell that is a deterministic program of operations that a tape knows."""
        cell = node.cell.arrow if isinstance(node.cell, Lift) else node.cell
        program = self.model.programs.get(_name_of(cell) or "")
        if isinstance(cell, Instance):
            program = called(cell)
        if program is None or program.sort is not Sort.DETERMINISTIC:
            return None
        items = len(program.inputs) - len(factors(node.state.space))
        if items < 1 or len(program.returns) != len(program.inputs) - items:
            return None
        from qvr_core.runtime.build.tape_compiler import tape_of
        from qvr_core.runtime.loops.loop import loop_of

        tape = tape_of(program, items, self.model, self.arrow, training=training)
        return None if tape is None else loop_of(tape)

    def transformation(self, name: str) -> Map:
        """The map of a transformation, builtin or declared in the file."""
        return transformation_named(name, self.model, self)

    def algebra(self, name: str) -> Algebra:
        """The algebra of a composition, builtin or defined in the file."""
        return algebra_named(name, self.model, self)

    def copies(self, node: Stack) -> list[ArrowModule]:
        """The fresh copies of a stack's body."""
        name = _name_of(node.body)
        if name is None:
            name = "stack"
        elif name in self.model.arrows:
            name = f"{name}_stack"
        name = self._unique(name, self.model.lets) if name in self.model.lets else self._unique(name)
        return [self._fresh(f"{name}.{index}.").arrow(node.body) for index in range(node.count)]

    def _fresh(self, prefix: str) -> Builder:
        """A scope in which every name is built anew."""
        scope = Builder(self.model, self.data, self.program)
        scope.prefix, scope.root = prefix, self.root
        return scope

    def _unique(self, name: str, allowed: Mapping[str, object] | None = None) -> str:
        """A full name that nothing else has; a let's own name is free for its first stack."""
        taken = self._stacked if allowed is not None else self._stacked | self._taken
        candidate, count = name, 1
        while candidate in taken:
            count += 1
            candidate = f"{name}_{count}"
        self._stacked.add(candidate)
        return self.prefix + candidate


def _name_of(node: Arrow) -> str | None:
    """The declared name that an expression is, through lifting."""
    while isinstance(node, Lift):
        node = node.arrow
    return node.name if isinstance(node, Ref) else None
