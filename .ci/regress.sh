#!/usr/bin/env bash
# Does a branch make a benchmark worse than where it left the main branch?
#
#   regress.sh BASE HEAD [option...]
#
# Options go to 'marginbench regressions'. The verdict is printed, and added to the summary of the
# job if GITHUB_STEP_SUMMARY names a file. The page is written to regressions.html, or to the file
# that REGRESSIONS_HTML names.
#
# Exit code: 0 nothing worse, 1 worse beyond its bound, 2 a failure.
set -euo pipefail
cd "$(dirname "$0")/.."
# A summary may have 1 MiB.
limit=900000

[ $# -ge 2 ] || { echo "regress: write BASE HEAD" >&2; exit 2; }
base=$1 head=$2
shift 2
# What has been merged into the main branch since is none of this branch's doing.
fork=$(git merge-base "$base" "$head") ||
    { echo "regress: $base, $head: no common ancestor here; fetch the whole history" >&2; exit 2; }
text=$(mktemp)
trap 'rm -f "$text"' EXIT

# Apart from the command, whose exit code 1 means something else than a failed installation.
tox run --quiet -e regress --notest || exit 2
status=0
tox run -qq -e regress -- "$fork" "$head" \
    --text --html "${REGRESSIONS_HTML:-regressions.html}" "$@" >"$text" || status=$?
cat "$text"
if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then
    {
        echo "### Regressions: exit code $status"
        echo '``````text'
        head -c "$limit" "$text"
        echo
        echo '``````'
    } >>"$GITHUB_STEP_SUMMARY"
fi
exit "$status"
