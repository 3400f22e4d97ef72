"""The bits of numpy's generator: PCG64 (O'Neill 2014, XSL-RR 128/64), as whole numbers of 32 bits.

A generator is eight of them: the state and the increment, lowest first.
"""

# pyright: reportMissingParameterType=false
from __future__ import annotations

from qvr_core.codegen.intrinsics import logical_shift

LOW = 0xFFFFFFFF
M0, M1, M2, M3 = 0x9FCCF645, 0x4385DF64, 0x1FC65DA4, 0x2360ED05
"""The multiplier."""


def following(generator):
    """The next 64 bits."""
    s0, s1, s2, s3 = generator[0], generator[1], generator[2], generator[3]
    p00, p01, p10 = s0 * M0, s0 * M1, s1 * M0
    p02, p11, p20 = s0 * M2, s1 * M1, s2 * M0
    t0 = (p00 & LOW) + generator[4]
    t1 = logical_shift(p00, 32) + (p01 & LOW) + (p10 & LOW) + generator[5] + (t0 >> 32)
    t2 = (p02 & LOW) + (p11 & LOW) + (p20 & LOW) + generator[6] + (t1 >> 32)
    t2 += logical_shift(p01, 32) + logical_shift(p10, 32)
    t3 = logical_shift(p02, 32) + logical_shift(p11, 32) + logical_shift(p20, 32) + generator[7] + (t2 >> 32)
    t3 += ((s0 * M3) & LOW) + ((s1 * M2) & LOW) + ((s2 * M1) & LOW) + ((s3 * M0) & LOW)
    generator[0], generator[1], generator[2], generator[3] = t0 & LOW, t1 & LOW, t2 & LOW, t3 & LOW
    mixed = (((t3 & LOW) << 32) | (t2 & LOW)) ^ (((t1 & LOW) << 32) | (t0 & LOW))
    turn = (t3 & LOW) >> 26
    return logical_shift(mixed, turn) | (mixed << ((64 - turn) & 63))
