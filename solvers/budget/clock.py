"""A clock for compiled code: the processor's cycle counter, read without a system call."""

from __future__ import annotations

import platform

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

#: Other processors refuse the instruction to ordinary programs; there nothing is measured.
HAS_TICKS = platform.machine().lower() in ("x86_64", "amd64")


@intrinsic
def ticks(typingctx):
    """The counter as int64; 0 where there is none."""

    def code(context, builder, signature, args):
        word = ir.IntType(64)
        if not HAS_TICKS:
            return ir.Constant(word, 0)
        read = builder.module.declare_intrinsic(
            "llvm.readcyclecounter", fnty=ir.FunctionType(word, [])
        )
        return builder.call(read, [])

    return types.int64(), code
