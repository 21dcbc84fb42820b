#!/bin/sh
# Run ON a machine with a GPU that has Python 3.12 and torch, but no network, from the root of the
# work tree; `make device-wheels` has gathered before what such a machine lacks.
#
#     sh benchmarks/device.sh tests [ARGUMENT...]    tests/gpu, or what pytest's arguments name
#     sh benchmarks/device.sh bench [PART...]        `heedful bench device`, all parts or these
#     sh benchmarks/device.sh run COMMAND...         a command that can import heedful
#
# What is to be kept is written to the folder OUT. The environment also takes PYTHON, SITE (where
# the wheels are installed) and SECONDS_LEFT (after which tests or parts are ended).
set -e
PYTHON=${PYTHON:-python3}
SITE=${SITE:-$HOME/.heedful-site}
OUT=${OUT:-build/device-out}
SECONDS_LEFT=${SECONDS_LEFT:-530}
export PYTHON OUT PYTHONUNBUFFERED=1

if [ ! -e "$SITE/.installed" ]; then
    "$PYTHON" -m pip install --quiet --no-index --no-deps --no-compile --no-cache-dir --upgrade \
        --target "$SITE" build/device-wheels/*.whl
    touch "$SITE/.installed"
fi
export PYTHONPATH="$SITE:$PWD/src:$PWD${PYTHONPATH:+:$PYTHONPATH}"
mkdir -p "$OUT"
# Compiles the C functions, once, and shows what this machine is.
"$PYTHON" -m heedful info > "$OUT/info.txt" || { cat "$OUT/info.txt"; exit 1; }

task=${1:?tests, bench or run is needed}
shift
case $task in
tests)
    status=0
    [ $# -gt 0 ] || set -- tests/gpu
    # Without the checks of shapes, as `make test-gpu`. Another plugin of such a machine warns beside workers, and here a warning is an error.
    OMP_NUM_THREADS=1 timeout --signal INT --kill-after 15 "$SECONDS_LEFT" \
        "$PYTHON" -m pytest --override-ini addopts= -p no:jaxtyping --numprocesses 6 --dist load -p no:cacheprovider \
        -p no:benchmark -p no:pytest_cov -p no:pytest_mock --quiet -rfE \
        --junitxml "$OUT/tests.xml" "$@" > "$OUT/tests.txt" 2>&1 || status=$?
    cat "$OUT/info.txt"
    tail -n 60 "$OUT/tests.txt"
    exit "$status"
    ;;
bench)
    parts=
    for part in "$@"; do parts="$parts --part $part"; done
    # shellcheck disable=SC2086
    exec timeout --signal INT --kill-after 15 "$SECONDS_LEFT" "$PYTHON" -m heedful bench device \
        --peers-python "$PYTHON" --out "$OUT" $parts
    ;;
run)
    exec timeout --signal INT --kill-after 15 "$SECONDS_LEFT" "$@"
    ;;
*)
    echo "tests, bench or run is needed, but got $task" >&2
    exit 2
    ;;
esac
