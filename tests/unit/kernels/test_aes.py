"""AES-256 by instructions of processors: each kind gives the blocks of OpenSSL, or at least has the instructions."""

from __future__ import annotations

import ctypes
import re
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from llvmlite import binding, ir

from sfumato.kernels import aes

KINDS: dict[str, tuple[aes.Rounds, str, str, set[str]]] = {
    "AES-NI": (aes.X86Rounds, "x86_64-unknown-linux-gnu", "+aes,+sse4.2", {"aes"}),
    "VAES": (aes.WideX86Rounds, "x86_64-unknown-linux-gnu", "+aes,+vaes,+avx2", {"aes", "vaes", "avx2"}),
    "ARMv8": (aes.ArmRounds, "aarch64-unknown-linux-gnu", "+neon,+aes", {"aes", "neon"}),
}
COUNTS = {"AES-NI": {"aesenc": 104, "aesenclast": 8}, "VAES": {"vaesenc": 52}, "ARMv8": {"aese": 112, "aesmc": 104}}


def _module(kind: str) -> tuple[Any, Any]:
    """A function that encrypts eight blocks, compiled for a kind of processor."""
    rounds, triple, features, _ = KINDS[kind]
    module, words = ir.Module(), ir.IntType(64).as_pointer()
    module.triple = triple
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [words] * 3), "encrypt")
    builder = ir.IRBuilder(function.append_basic_block())
    schedule, blocks, out = function.args
    aes.emit(builder, schedule, blocks, out, rounds)
    builder.ret_void()
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    target = binding.Target.from_triple(triple).create_target_machine(features=features, opt=3)
    parsed = binding.parse_assembly(str(module))
    parsed.verify()
    return parsed, target


@pytest.mark.parametrize("kind", KINDS)
def test_each_round_is_one_instruction(kind: str) -> None:
    parsed, target = _module(kind)
    code = target.emit_assembly(parsed)
    found = {name: len(re.findall(rf"\b{name}\b", code)) for name in COUNTS[kind]}
    assert found == COUNTS[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_are_those_of_openssl(kind: str) -> None:
    _, triple, _, needed = KINDS[kind]
    here = binding.get_host_cpu_features()
    same = triple.startswith(binding.get_default_triple().split("-")[0])
    if not same or not aes.is_available() or not all(here.get(one) for one in needed):
        pytest.skip(f"this processor has no instructions of {kind}")
    parsed, target = _module(kind)
    engine = binding.create_mcjit_compiler(parsed, target)
    engine.finalize_object()
    encrypt = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(engine.get_function_address("encrypt"))
    rng = np.random.default_rng(1)
    key, blocks, out = rng.bytes(32), rng.integers(0, 1 << 64, 16, np.uint64), np.empty(16, np.uint64)
    schedule = np.empty(aes.SCHEDULE, np.uint64)
    aes.expand(np.frombuffer(key, np.uint32), schedule)
    encrypt(schedule.ctypes.data, blocks.ctypes.data, out.ctypes.data)
    assert out.tobytes() == Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(blocks.tobytes())  # noqa: S305


@pytest.mark.skipif(not aes.is_available(), reason="this processor has no instructions for AES")
def test_keys_are_expanded_as_in_the_standard() -> None:
    """FIPS 197, appendix A.3."""
    key = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
    schedule = np.empty(aes.SCHEDULE, np.uint64)
    aes.expand(np.frombuffer(key, np.uint32), schedule)
    assert schedule.tobytes()[-16:].hex() == "fe4890d1e6188d0b046df344706c631e"
