#!/usr/bin/env bash
# Benchmarks the commits that have no results yet. asv's result files are on a branch of their own,
# asv-results, and are kept there whatever happens.
#
# The environment may set
#   ASV_MACHINE   the name under which results are kept (default: ci); runners change theirs
#   ASV_BENCH     a regular expression of benchmarks (default: work, shapes and solve.Fit)
#   ASV_STEPS     how many commits at most, evenly spaced (default: 20)
#   ASV_SECONDS   when asv is interrupted (default: 4 hours); what it has by then is kept
#
# Exit code: 0 if all is well, 2 if a benchmark failed, otherwise that of what went wrong.
set -euo pipefail
cd "$(dirname "$0")/.."
machine=${ASV_MACHINE:-ci} branch=asv-results results=.asv/results
head=$(git rev-parse --short=8 HEAD)

measured() { compgen -G "$results/$machine/$1*.json" >/dev/null; }

mkdir -p "$results"
# A remote that does not answer is an error, not a branch that is missing (2).
code=0
git ls-remote --exit-code --heads origin "refs/heads/$branch" >/dev/null || code=$?
case $code in
0) git fetch --quiet origin "$branch" && git archive FETCH_HEAD | tar -x -C "$results" ;;
2) ;;
*) echo "asv-nightly: origin does not answer" >&2 && exit 2 ;;
esac

status=0
if measured "$head-"; then
    echo "asv-nightly: $head has results already"
else
    # NEW means the whole history as long as there are no results.
    range='HEAD^!'
    if measured '[0-9a-f]*-'; then range=NEW; fi
    asv machine --yes --machine "$machine"
    timeout --signal=INT --kill-after=60 "${ASV_SECONDS:-14400}" \
        asv run "$range" --machine "$machine" --bench "${ASV_BENCH:-^(work\.|shapes\.|solve\.Fit)}" \
        --steps "${ASV_STEPS:-20}" --show-stderr || status=$?
fi

# On top of what others have pushed meanwhile; of a file that both have, ours is the newer one.
export GIT_INDEX_FILE=$PWD/.asv/index
for try in 1 2 3 4 5; do
    parent=()
    git read-tree --empty
    if git fetch --quiet origin "$branch" 2>/dev/null; then
        parent=(-p "$(git rev-parse FETCH_HEAD)")
        git read-tree FETCH_HEAD
    fi
    git --work-tree="$results" add --force --ignore-removal .
    commit=$(git -c user.name=benchmarks -c user.email=benchmarks@localhost commit-tree \
        "$(git write-tree)" "${parent[@]}" -m "Results up to $head")
    if git push --quiet origin "$commit:refs/heads/$branch"; then exit "$status"; fi
    echo "asv-nightly: not pushed, try $try of 5" >&2
    sleep $((try * ${ASV_PAUSE:-5}))
done
echo "asv-nightly: $branch could not be pushed; the results are in $results" >&2
exit 2
