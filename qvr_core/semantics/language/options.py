"""The options of steps, programs, spaces, deductions and rules: what may stand where, and what it means."""

from __future__ import annotations

from collections.abc import Mapping

MEANINGS: Mapping[str, str] = {
    "via": "An integer vector: the group of each row. Its length is the number of rows.",
    "over": "Of a draw the set that its numbers run over, one for each element; of `marginalize` the groups whose "
    "steps share one value.",
    "iid_over": "The batch plate: independent draws along this axis.",
    "mask": "Rows, or positions of a sequence, where it is false do not count.",
    "weight": "The log density of each row, or position, is multiplied by it.",
    "at": "Only the rows, or positions of a sequence, that this index selects are scored.",
    "right_censored": "Names a column. Where it is 1 (or true), the value t is only known to be reached: P(T ≥ t) "
    "takes the place of the density.",
    "left_censored": "Names a column. Where it is 1 (or true), the value t is only known not to be exceeded: "
    "P(T ≤ t) takes the place of the density.",
    "interval": "The value t is known to lie in (t, interval]; where both are equal it is known, ∞ leaves it open.",
    "truncate_lower": "Only values from here on are seen: the density is divided by their probability.",
    "truncate_upper": "Only values up to here are seen: the density is divided by their probability.",
    "missing": "What becomes of cells without a value; without this option they are an error. `impute`: each is "
    "estimated with the rest, a latent under the name of the step (discrete ones are summed out). `drop`: they do not "
    "count.",
    "noncentred": "Sampled as a standardised value, then scaled and shifted: easier for NUTS where groups have few "
    "data. The model stays the same: its density, the name and the values that are reported.",
    "sum_to_zero": "The numbers over the last index sum to 0, and are Normal in all other directions: effects beside "
    "an intercept, without one of them as its reference.",
    "reduction": "How the values of a marginalized site are joined: `logsumexp`.",
    "lengths": "How many positions of each row's sequences, or elements of each chain, there are: others do not count. "
    "Attention sees no others.",
    "auxiliary": "A draw that a guide makes on the way, none of the model's latents: its density does not count.",
    "guide": "The program whose latents this one draws: it is its guide, which `qvr run svi` fits.",
    "rest": "`mean_field`: latents that the guide does not draw have independent Normals, as in the automatic guide.",
    "init": "Where the numbers start: one for all, or a list with one for each number of an element.",
    "keep": "The lets whose values a fit keeps beside the latents; by itself all small ones that depend on a latent.",
    "effects": "What the body may do: a subset of `Sample`, `Score`, `Marginal`, `Pure`.",
    "low": "The lower bound of the space.",
    "high": "The upper bound of the space.",
    "semiring": "`LogProb`, `Viterbi`, `Boolean` or `Counting`.",
    "start": "The atom that a whole sentence must have.",
    "normalised": "Rules and entries that conclude the same are choices whose probabilities add up to 1: the goal's "
    "weight is the log probability of the sentence.",
    "depth": "Of a decoder how many levels a term has at most, of a deduction the deepest category that is built.",
    "tolerance": "Changes below this count as the fixed point.",
    "max_iterations": "After so many rounds the chart stops.",
    "learnable": "Gives the rule or entry a learned log-weight.",
    "bounded": "Keeps the log-weight of a cyclic rule negative.",
}
"""What an option does, by its key."""
MEANINGS_OF_STEPS: Mapping[tuple[str, str], str] = {
    (
        "sample",
        "over",
    ): "The set that the numbers of one draw run over: one number for each of its elements, such as one "
    "probability for each topic.",
    ("marginalize", "over"): "The groups: the rows of one group share one value of what is summed out.",
}
"""The same where it depends on the word of the step."""


WORD_MEANINGS: Mapping[tuple[str, str], str] = {
    ("missing", "impute"): "each cell without a value is estimated with the rest, a latent under the name of the step "
    "(discrete ones are summed out).",
    ("missing", "drop"): "cells without a value do not count.",
    ("param_source", "mlp"): "two hidden layers with tanh.",
    ("param_source", "linear"): "one linear map, without hidden layers.",
    ("rest", "mean_field"): "latents that the guide does not draw have independent Normals.",
}
"""What the words mean that an option takes, by its key and the word."""


def meaning(key: str, step: str) -> str:
    """What an option does on a step."""
    return MEANINGS_OF_STEPS.get((step, key), MEANINGS[key])


OBJECT_KEYS: Mapping[str, str] = {
    "over": "the axis of one draw (sample), or the groups (marginalize)",
    "iid_over": "the plate of independent draws",
}
LIMIT_KEYS: Mapping[str, str] = {
    "right_censored": "elements that are known to be at least their value",
    "left_censored": "elements that are known to be at most their value",
    "interval": "the upper end of where each element lies",
    "truncate_lower": "the least value that can be seen",
    "truncate_upper": "the greatest value that can be seen",
}
"""Options of `observe` that censor or truncate."""
VALUE_KEYS: Mapping[str, str] = {
    "via": "the group of each row, an integer vector",
    "mask": "rows that count",
    "weight": "a factor on each row's log density",
    "at": "the rows that are selected",
    "lengths": "how many elements each chain has",
    **LIMIT_KEYS,
}
STEP_KEYS: Mapping[str, tuple[str, ...]] = {
    "sample": ("over", "iid_over", "via", "mask", "weight", "at", "noncentred", "sum_to_zero", "lengths", "auxiliary"),
    "observe": ("over", "iid_over", "via", "mask", "weight", "at", *LIMIT_KEYS, "missing", "lengths"),
    "predict": ("over", "iid_over", "via", "at", "lengths"),
    "param": ("init",),
    "data": ("lengths",),
    "marginalize": ("over", "reduction", "iid_over", "via", "mask", "weight", "at", "lengths"),
}
FLAGS = ("noncentred", "sum_to_zero", "auxiliary")
"""Options of steps that stand alone, without a value."""
REDUCTIONS = ("logsumexp",)
MISSING = ("impute", "drop")
"""What is done with the missing cells of an observed step."""

EFFECTS = ("Sample", "Score", "Marginal", "Pure")
PROGRAM_KEYS = ("effects", "lengths", "keep", "guide", "rest")
REST = ("mean_field",)
"""What moves the latents that a guide does not draw."""

SEMIRINGS: Mapping[str, str] = {
    "LogProb": "sums over derivations, in logs",
    "Viterbi": "the best derivation",
    "Boolean": "whether there is a derivation",
    "Counting": "the number of derivations",
}
DEDUCTION_KEYS = ("semiring", "start", "normalised", "depth", "tolerance", "max_iterations")
DECODER_KEYS = ("depth",)
MEANINGS_OF_RULES: Mapping[str, str] = {
    "init": "Where the learned log-weight starts.",
    "weight": "The log-weight of the rule or entry.",
}
"""What these attributes mean on a rule: on steps they mean something else."""
RULE_ATTRIBUTES = ("learnable", "bounded", "init", "weight")
RULE_FLAGS = ("learnable", "bounded")
"""Attributes that stand alone, without a value."""

WORDS: Mapping[str, tuple[str, ...]] = {
    "semiring": tuple(SEMIRINGS),
    "effects": EFFECTS,
    "reduction": REDUCTIONS,
    "missing": MISSING,
    "rest": REST,
}
"""The words that an option takes, where it takes words from a list."""
