#!/usr/bin/env bash
# Keeps asv's result files on a branch of their own, apart from the history of the code.
#
#   asv-results.sh checkout    make .asv/results a worktree of the branch, which may not exist yet
#   asv-results.sh push        commit what is new there, and push it
#
# The environment may name another branch (ASV_BRANCH) and another remote (ASV_REMOTE).
set -euo pipefail
cd "$(dirname "$0")/.."
branch=${ASV_BRANCH:-asv-results}
remote=${ASV_REMOTE:-origin}
results=.asv/results
tries=5

# Commits need an author, and a fresh runner has none.
if ! git config user.email >/dev/null; then
    export GIT_AUTHOR_NAME=benchmarks GIT_AUTHOR_EMAIL=benchmarks@localhost
    export GIT_COMMITTER_NAME=$GIT_AUTHOR_NAME GIT_COMMITTER_EMAIL=$GIT_AUTHOR_EMAIL
fi

fail() {
    echo "asv-results: $1" >&2
    exit 2
}

in_results() { git -C "$results" "$@"; }

# Whether the remote has the branch. A remote that does not answer is an error, not a "no": to
# begin the branch anew would hide all results.
published() {
    local code=0
    git ls-remote --exit-code --heads "$remote" "refs/heads/$branch" >/dev/null || code=$?
    case $code in
    0) return 0 ;;
    2) return 1 ;;
    *) fail "$remote: does not answer; check the remote and run this again" ;;
    esac
}

checkout() {
    git worktree prune
    if [ -e "$results/.git" ]; then
        [ "$(in_results rev-parse --abbrev-ref HEAD)" = "$branch" ] ||
            fail "$results: is no worktree of $branch; remove it with 'git worktree remove'"
        ! published || catch_up
        return
    fi
    [ -z "$(ls -A "$results" 2>/dev/null)" ] ||
        fail "$results: holds files that are not on $branch; move them away"
    if git show-ref --verify --quiet "refs/heads/$branch"; then
        # What an earlier job here could not push.
        git worktree add --quiet "$results" "$branch"
        ! published || catch_up
    elif published; then
        git fetch --quiet "$remote" "refs/heads/$branch"
        git worktree add --quiet -b "$branch" "$results" FETCH_HEAD
    else
        begin
    fi
}

# An orphan branch, without a commit until there are results.
begin() {
    git worktree add --quiet --detach --no-checkout "$results" HEAD
    in_results symbolic-ref HEAD "refs/heads/$branch"
    in_results read-tree --empty
    # Two runs may have measured one commit. Lines of both in one file would not be JSON.
    echo "*.json merge=binary" >"$results/.gitattributes"
}

# Put our commits on top of those of the remote. Of a file that both have, ours is the newer one.
catch_up() {
    in_results fetch --quiet "$remote" "$branch"
    if in_results rev-parse --quiet --verify HEAD >/dev/null; then
        in_results rebase --quiet --autostash --strategy-option=theirs FETCH_HEAD || {
            in_results rebase --abort
            fail "$branch: conflicts with that of $remote; mend it in $results and push again"
        }
    else
        in_results reset --quiet --hard FETCH_HEAD
    fi
}

push() {
    [ -e "$results/.git" ] || fail "$results: is no worktree; run 'asv-results.sh checkout' first"
    in_results add --all
    if in_results diff --cached --quiet; then
        echo "asv-results: nothing new"
    else
        in_results commit --quiet --message "Results up to $(git rev-parse --short=12 HEAD)"
    fi
    local try
    for ((try = 1; try <= tries; try++)); do
        if in_results push --quiet "$remote" "HEAD:refs/heads/$branch"; then
            return
        fi
        echo "asv-results: not pushed, try $try of $tries" >&2
        sleep $((try * ${ASV_PAUSE:-5}))
        ! published || catch_up
    done
    fail "$branch: could not be pushed to $remote; the results are in $results"
}

case ${1:-} in
checkout) checkout ;;
push) push ;;
*) fail "${1:-no command}: write 'checkout' or 'push'" ;;
esac
