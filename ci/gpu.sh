#!/usr/bin/env bash
# Proves a series on a GPU; see --help.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
VLLM_VERSION=${VLLM_VERSION:-0.23.0}
SERIES=${SERIES:-mrv2-async-output}
OUT_DIR=${OUT_DIR:-dist/gpu}
PYTHON=${PYTHON:-python3}
VENV=${VENV:-}
QUICK=${QUICK:-0}
dry_run=0

usage() {
  cat <<TEXT
Usage: ci/gpu.sh [--dry-run] [--help]

Installs the CUDA wheel of vLLM and this tool into an environment of their own, runs
the fork's tests with and without the series, then 'vllm-graft verify', on the GPU.

  --dry-run  print each command, and run none
  --help     print this

Environment variables, with their defaults:
  VLLM_VERSION=0.23.0        the release to install; pip's own settings hold
  SERIES=mrv2-async-output   the series to prove
  OUT_DIR=dist/gpu           gets status.json, base.xml, grafted.xml, summary.json,
                             and verify.json, verify.xml, verify.html
  PYTHON=python3             makes the environment
  VENV=OUT_DIR/venv          the environment; made anew
  QUICK=0                    1 for 'verify --quick'

Exit codes: 0 the series holds, 1 it does not, 2 bad usage or no GPU.
TEXT
}

fail() {
  printf 'ci/gpu.sh: error: %s\n' "$1" >&2
  exit "${2:-1}"
}

while (($#)); do
  case $1 in
    --dry-run) dry_run=1 ;;
    --help | -h) usage && exit 0 ;;
    *) fail "unknown argument '$1'; see --help" 2 ;;
  esac
  shift
done

# Prints a command as one would type it, and runs it unless this is a dry run.
run() {
  local words
  printf -v words ' %q' "$@"
  printf '+%s\n' "$words" >&2
  ((dry_run)) || "$@"
}

# The same; what the command prints goes to a file, which its first argument names.
run_to() {
  local file=$1 words
  shift
  printf -v words ' %q' "$@"
  printf '+%s > %q\n' "$words" "$file" >&2
  ((dry_run)) || "$@" >"$file"
}

# The fork's tests, on a vLLM as the command in front of them makes it.
run_tests() {
  local report=$1
  shift
  run env -C "$work" PYTHONPATH="$work" "$@" "$python" -m pytest tests/v1 \
    -q -p no:cacheprovider --timeout 600 \
    --junitxml "$report" -o junit_family=xunit1
}

# Does what follows, and keeps its exit code in $code.
keep_code() {
  code=0
  "$@" || code=$?
}

out=$OUT_DIR
[[ $out == /* ]] || out=$PWD/$out
venv=${VENV:-$out/venv}
work=$out/work
python=$venv/bin/python
graft=$venv/bin/vllm-graft
summary=$root/ci/gpu_summary.py
failures=()
# Models are made on the spot; nothing is reported or downloaded but packages.
export VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1 HF_HUB_OFFLINE=1

run mkdir -p "$out"
run "$PYTHON" -m venv --clear "$venv"
run "$python" -m pip install --no-input "vllm==$VLLM_VERSION" pytest pytest-timeout
run "$python" -m pip install --no-input "$root"
run "$python" -c 'import torch; torch.cuda.is_available() or exit("no GPU")' ||
  fail "torch finds no CUDA device" 2

# Which of base and grafted the installed vLLM is; anything else ends here.
keep_code run_to "$out/status.json" "$graft" status --json --series "$SERIES"
((code <= 1)) || fail "'vllm-graft status' ended with $code"
if ((dry_run)); then
  installed=applies
else
  installed=$("$python" "$summary" verdict "$out/status.json") ||
    fail "the series does not fit vLLM $VLLM_VERSION; see $out/status.json"
fi
case $installed in
  applies) base=() ;;
  applied) base=("$graft" run --without "$SERIES" --) ;;
  *) fail "unknown verdict '$installed'" ;;
esac

# The tests are new files of the fork; a wheel has none.
run rm -rf "$work"
run mkdir -p "$work"
run cp -R "$root/patches/$SERIES/files/tests" "$work/tests"
run find "$work/tests" -type d -exec touch '{}/__init__.py' ';'

# On base some fail, or the series would be idle; 1 is pytest's code for that.
keep_code run_tests "$out/base.xml" "${base[@]}"
((code <= 1)) || fail "pytest ended with $code on base"
keep_code run_tests "$out/grafted.xml" "$graft" run --series "$SERIES" --
((code <= 1)) || fail "pytest ended with $code on grafted"
run_to "$out/summary.json" \
  "$python" "$summary" compare "$out/base.xml" "$out/grafted.xml" ||
  failures+=("the fork's tests")

if run "$graft" verify --help >/dev/null; then
  options=(--series "$SERIES" --device cuda --json)
  options+=(--junit "$out/verify.xml" --html "$out/verify.html")
  [[ $QUICK != 1 ]] || options+=(--quick)
  run_to "$out/verify.json" "$graft" verify "${options[@]}" || failures+=(verify)
else
  printf "ci/gpu.sh: this vllm-graft has no 'verify'; left out\n" >&2
fi

if ((dry_run)); then
  printf 'a dry run: nothing was run\n' >&2
  exit 0
fi
((${#failures[@]} == 0)) || fail "failed: ${failures[*]}; see $out"
printf 'the series holds on this GPU; results in %s\n' "$out" >&2
