#!/bin/sh
# Run a command as on a processor that has AVX2 alone, whatever this one has:
#
#     sh benchmarks/held_to_avx2.sh python -m benchmarks.speed training --out docs/results/speed-avx2
#
# Our C functions are compiled for AVX2; torch, oneDNN, MKL and CTranslate2 are told to use no more.
# The memory, the caches and the clock stay this processor's own.
set -e
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
cat > "$folder/cc" <<'END'
#!/bin/bash
exec cc "${@/#-march=native/-march=x86-64-v3}"
END
chmod +x "$folder/cc"
CC="$folder/cc" HEEDFUL_NATIVE=compile XDG_CACHE_HOME="$folder" ATEN_CPU_CAPABILITY=avx2 \
    ONEDNN_MAX_CPU_ISA=AVX2 DNNL_MAX_CPU_ISA=AVX2 MKL_ENABLE_INSTRUCTIONS=AVX2 \
    CT2_FORCE_CPU_ISA=AVX2 "$@"
