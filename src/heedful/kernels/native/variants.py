"""
Compiler options, and the variants of the C functions in a wheel; this module imports nothing.

`setup.py` compiles each variant, and `compile.py` loads the first that the processor can run.
"""

# Sums may be computed in another order, so that they can be vectorized. -ffast-math is not used,
# because a library linked with it makes the complete process round the smallest numbers to zero.
OPTIONS = (
    *("-O3", "-std=c11", "-fopenmp", "-fPIC", "-shared"),
    *("-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math", "-fno-math-errno"),
)
LIBRARIES = ("-lm",)

_AVX2 = frozenset({"abm", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"})
_AVX512 = frozenset({"avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"})

VARIANTS: dict[str, tuple[frozenset[str], tuple[str, ...]]] = {
    "avx512-bf16": (
        _AVX2 | _AVX512 | {"avx512_vnni", "avx512_bf16"},
        (
            *("-march=x86-64-v4", "-mavx512vnni", "-mavx512bf16"),
            "-mprefer-vector-width=512",
        ),
    ),
    "avx512-vnni": (
        _AVX2 | _AVX512 | {"avx512_vnni"},
        ("-march=x86-64-v4", "-mavx512vnni", "-mprefer-vector-width=512"),
    ),
    "avx-vnni": (_AVX2 | {"avx_vnni"}, ("-march=x86-64-v3", "-mavxvnni")),
    "avx2": (_AVX2, ("-march=x86-64-v3",)),
}
"""Flags of /proc/cpuinfo that a variant needs, and its options; the fastest variant is first."""
