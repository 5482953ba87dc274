"""AES-256 by the processor's own instructions, inside compiled kernels: the blocks that OpenSSL gives, without a call.

Eight blocks are encrypted side by side, so that each round of one hides the latency of the others. No table is looked
up by a secret, in the expansion of keys neither: time does not depend on keys or addresses. Where the processor, or
the target that numba compiles for, has no such instructions, `is_available` is false and callers use OpenSSL.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba import types
from numba.core import cgutils, config
from numba.extending import intrinsic

from sfumato.kernels import Words
from sfumato.kernels.compiled import copy_to, njit

SIDE_BY_SIDE = 8
"""Blocks per call: arrays of blocks must have room for a multiple of it."""

SCHEDULE = 30
"""Words of an expanded key: 15 round keys of 128 bits."""

_ROUNDS = 14
_KEY_WORDS = 8
_ARM = platform.machine().lower() in ("aarch64", "arm64")
_X86 = platform.machine().lower() in ("x86_64", "amd64")


@cache
def is_available() -> bool:
    """Whether numba compiles for a processor with instructions for AES."""
    if config.DISABLE_JIT or not (_X86 or _ARM):
        return False
    if config.CPU_NAME is not None or config.CPU_FEATURES is not None:
        return "+aes" in (config.CPU_FEATURES or "").split(",")
    return bool(get_host_cpu_features().get("aes", False))


_I32, _I64 = ir.IntType(32), ir.IntType(64)
_BLOCK = ir.VectorType(_I64, 2)
_BYTES = ir.VectorType(ir.IntType(8), 16)
_COLUMNS = ir.VectorType(_I32, 4)

RoundKey = Callable[[int], Any]


class X86Rounds:
    """AES-NI: a round ends with its key."""

    per_vector = 1
    """Blocks that one instruction works on."""
    suffix = ""

    def __init__(self, builder: Any) -> None:
        self._builder = builder
        vector = vectors(self.per_vector)
        self._round = _function(builder, f"llvm.x86.aesni.aesenc{self.suffix}", vector, vector)
        self._last = _function(builder, f"llvm.x86.aesni.aesenclast{self.suffix}", vector, vector)

    def encrypt(self, states: list[Any], key: RoundKey) -> list[Any]:
        """Instructions that encrypt some blocks."""
        builder, first = self._builder, key(0)
        states = [builder.xor(state, first) for state in states]
        for number in range(1, _ROUNDS):
            one = key(number)
            states = [builder.call(self._round, [state, one]) for state in states]
        last = key(_ROUNDS)
        return [builder.call(self._last, [state, last]) for state in states]


class WideX86Rounds(X86Rounds):
    """VAES: the same for two blocks at once, in half the time."""

    per_vector = 2
    suffix = ".256"


class ArmRounds:
    """The cryptographic extension of ARMv8: a round begins with its key, and mixing columns is an instruction."""

    per_vector = 1

    def __init__(self, builder: Any) -> None:
        self._builder = builder
        self._round = _function(builder, "llvm.aarch64.crypto.aese", _BYTES, _BYTES)
        self._mix = _function(builder, "llvm.aarch64.crypto.aesmc", _BYTES)

    def encrypt(self, states: list[Any], key: RoundKey) -> list[Any]:
        """Instructions that encrypt some blocks."""
        builder = self._builder
        states = [builder.bitcast(state, _BYTES) for state in states]
        for number in range(_ROUNDS - 1):
            one = builder.bitcast(key(number), _BYTES)
            states = [builder.call(self._mix, [builder.call(self._round, [state, one])]) for state in states]
        one, last = builder.bitcast(key(_ROUNDS - 1), _BYTES), key(_ROUNDS)
        states = [builder.call(self._round, [state, one]) for state in states]
        return [builder.xor(builder.bitcast(state, _BLOCK), last) for state in states]


Rounds = type[X86Rounds] | type[ArmRounds]


@cache
def _rounds() -> Rounds:
    """The instructions of this processor."""
    if _ARM:
        return ArmRounds
    features = {} if config.CPU_FEATURES is not None else get_host_cpu_features()
    return WideX86Rounds if features.get("vaes", False) and features.get("avx2", False) else X86Rounds


def substitute(builder: Any, state: Any, *, arm: bool = _ARM) -> Any:
    """Instructions that shift the rows of a block and substitute its bytes: a last round under a key of zeros."""
    if not arm:
        last = _function(builder, "llvm.x86.aesni.aesenclast", _BLOCK, _BLOCK)
        return builder.call(last, [state, ir.Constant(_BLOCK, [0, 0])])
    one = _function(builder, "llvm.aarch64.crypto.aese", _BYTES, _BYTES)
    return builder.bitcast(builder.call(one, [builder.bitcast(state, _BYTES), ir.Constant(_BYTES, [0] * 16)]), _BLOCK)


def vectors(blocks: int) -> Any:
    """The type of a vector of some blocks."""
    return ir.VectorType(_I64, 2 * blocks)


def _function(builder: Any, name: str, *arguments: Any) -> Any:
    return cgutils.get_or_insert_function(builder.module, ir.FunctionType(arguments[0], arguments), name)


def emit(builder: Any, schedule: Any, blocks: Any, out: Any, rounds: Rounds) -> None:
    """Write instructions that encrypt `SIDE_BY_SIDE` blocks, given pointers to 64-bit words."""
    vector, lanes = vectors(rounds.per_vector), 2 * rounds.per_vector
    source, target = (builder.bitcast(pointer, vector.as_pointer()) for pointer in (blocks, out))
    keys = builder.bitcast(schedule, _BLOCK.as_pointer())

    def load(pointer: Any, index: int) -> Any:
        loaded = builder.load(builder.gep(pointer, [_I64(index)]))
        loaded.align = 8
        return loaded

    def key(number: int) -> Any:
        one = load(keys, number)
        both = ir.Constant(ir.VectorType(_I32, lanes), [i % 2 for i in range(lanes)])
        return builder.shuffle_vector(one, one, both)

    states = [load(source, i) for i in range(SIDE_BY_SIDE // rounds.per_vector)]
    for i, state in enumerate(rounds(builder).encrypt(states, key)):
        builder.store(state, builder.gep(target, [_I64(i)])).align = 8


def _subroutine(module: Any) -> Any:
    """A function of a module that encrypts blocks: compiled once for all its callers, which saves seconds."""
    words = _I64.as_pointer()
    name = "sfumato.aes256"
    if name in module.globals:
        return module.globals[name]
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [words, words, words]), name)
    function.linkage = "linkonce_odr"
    function.attributes.add("noinline")
    builder = ir.IRBuilder(function.append_basic_block())
    schedule, blocks, out = function.args
    emit(builder, schedule, blocks, out, _rounds())
    builder.ret_void()
    return function


@intrinsic
def _eight(
    typing_context: Any,  # noqa: ARG001 - numba's interface
    schedules: Any,
    key: Any,
    blocks: Any,
    start: Any,
    out: Any,
) -> Any:
    """Encrypt eight blocks, from number `start` on, under a row of `schedules`, to the same blocks of `out`."""
    signature = types.void(schedules, key, blocks, start, out)

    def generate(context: Any, builder: Any, given: Any, values: Any) -> Any:
        data = [context.make_array(given.args[i])(context, builder, values[i]).data for i in (0, 2, 4)]
        offsets = [builder.mul(values[1], _I64(SCHEDULE)), *[builder.shl(values[3], _I64(1))] * 2]
        pointers = [builder.gep(one, [offset]) for one, offset in zip(data, offsets, strict=True)]
        builder.call(_subroutine(builder.module), pointers)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def _substituted(typing_context: Any, word: Any) -> Any:  # noqa: ARG001 - numba's interface
    """The four bytes of a word substituted (FIPS 197, SubWord): shifting rows changes nothing of four equal columns."""
    signature = types.uint32(types.uint32)

    def generate(context: Any, builder: Any, given: Any, values: Any) -> Any:  # noqa: ARG001 - numba's interface
        columns = ir.Constant(_COLUMNS, ir.Undefined)
        for i in range(4):
            columns = builder.insert_element(columns, values[0], _I32(i))
        state = substitute(builder, builder.bitcast(columns, _BLOCK))
        return builder.extract_element(builder.bitcast(state, _COLUMNS), _I32(0))

    return (signature, generate) if isinstance(word, types.Integer) else None


@njit(cache=True, nogil=True)
def expand(key: Any, schedule: Words) -> None:  # pragma: no cover - compiled
    """Expand a key, given as eight 32-bit words, into the words of its round keys (FIPS 197, section 5.2)."""
    words = np.empty(2 * SCHEDULE, np.uint32)
    copy_to(words, key)
    constant = np.uint32(1)
    for i in range(_KEY_WORDS, 2 * SCHEDULE):
        word = words[i - 1]
        if i % _KEY_WORDS == 0:
            word = _substituted(np.uint32((word >> np.uint32(8)) | (word << np.uint32(24)))) ^ constant
            constant = np.uint32(constant << np.uint32(1))
        elif i % _KEY_WORDS == _KEY_WORDS // 2:
            word = _substituted(word)
        words[i] = words[i - _KEY_WORDS] ^ word
    for i in range(SCHEDULE):
        schedule[i] = np.uint64(words[2 * i]) | (np.uint64(words[2 * i + 1]) << np.uint64(32))


@njit(nogil=True)
def encrypt(schedules: Words, key: int, blocks: Words, count: int, out: Words) -> None:  # pragma: no cover - compiled
    """Encrypt `count` blocks of two words each under one of the schedules; all arrays are flat and contiguous.

    `blocks` and `out` must have room for a multiple of `SIDE_BY_SIDE` blocks; what is beyond `count` is overwritten.
    """
    for start in range(0, count, SIDE_BY_SIDE):
        _eight(schedules, np.int64(key), blocks, np.int64(start), out)
