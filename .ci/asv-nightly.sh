#!/usr/bin/env bash
# Benchmarks the commits that have no results yet, and keeps the results whatever happens.
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
machine=${ASV_MACHINE:-ci}
bench=${ASV_BENCH:-^(work\.|shapes\.|solve\.Fit)}
steps=${ASV_STEPS:-20}
seconds=${ASV_SECONDS:-14400}
results=.asv/results

measured() {
    compgen -G "$results/$machine/$1*.json" >/dev/null
}

# asv takes a name for the machine, but then looks up nothing else about it.
name_machine() {
    asv machine --yes
    python3 - "$machine" <<'END'
import json, pathlib, platform, sys

path, name = pathlib.Path.home() / ".asv-machine.json", sys.argv[1]
known = json.loads(path.read_text("utf-8"))
known[name] = known[platform.node()] | {"machine": name}
path.write_text(json.dumps(known, indent=4), "utf-8")
END
}

.ci/asv-results.sh checkout
# As asv begins the names of its files.
head=$(git rev-parse HEAD | cut -c1-8)
if measured "$head-"; then
    echo "asv-nightly: $head has results already"
    # An earlier job may not have been able to push them.
    exec .ci/asv-results.sh push
fi
# NEW means the whole history as long as there are no results.
range='HEAD^!'
if measured '[0-9a-f]*-'; then range=NEW; fi

name_machine
status=0
timeout --signal=INT --kill-after=60 "$seconds" \
    asv run "$range" --machine "$machine" --bench "$bench" --steps "$steps" --show-stderr ||
    status=$?
.ci/asv-results.sh push
exit "$status"
