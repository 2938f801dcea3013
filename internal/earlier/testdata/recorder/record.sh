#!/bin/sh
# record.sh makes ../log.tar.gz by an earlier version of scute, whose commit has the subject below. Run it in a
# clone with history, from the root of the repository. What is stored is not made again: it is what that version wrote.
set -eu
subject='Look at the status of a move before the daemon that writes it stops'
root=$PWD here=$PWD/internal/earlier/testdata/recorder
old=$(mktemp -d) && work=$(mktemp -d)
trap 'git -C "$root" worktree remove --force "$old"; rm -rf "$work"' EXIT
git worktree add -q "$old" "$(git log --format=%h -F --grep="$subject" -1)"
(cd "$old" && go build -o "$work/ctl" ./cmd/ctl && cd test && go build -o "$work/faultctl" ./cmd/faultctl)
cp "$here/mover/record_test.go.txt" "$old/mover/runner/record_test.go"
cp "$here/remediator/record_test.go.txt" "$old/remediator/runner/record_test.go"
cp "$here/projection/record_test.go.txt" "$old/internal/projection/record_test.go"
mkdir "$work/made" && cd "$work/made"

# The runs, one in each phase. A run that is to be found in the middle is killed there.
run() { "$work/ctl" run -f "$here/runs/$1.yaml" --local || true; }
killed() { # NAME FILE: the run is killed a second after the file is there
  "$work/ctl" run -f "$here/runs/$1.yaml" --local & until [ -e "$2" ]; do sleep 0.1; done
  sleep 1; kill -9 $! && wait $! || true
}
for name in degraded aborted rolled-back rollback-failed abandoned paused approval suspended; do run "$name"; done # two minutes
"$work/ctl" decide run abandoned -n fleet --local --task make --action abandon --reason 'done by hand'
killed killed upgrading
killed partly slow
killed rolling-back undoing
SCUTE_FAULT=after:1 "$work/faultctl" run -f "$here/runs/requested.yaml" --local || true
touch go # ends the commands that were left
sleep 1

# Moves and remediations, left at each point; then the histories of real ones, a snapshot and a seal.
for package in mover/runner remediator/runner internal/projection; do
  (cd "$old" && RECORD="$work/made/.scute" go test "./$package" -run '^TestRecord$' -count=1)
done

"$work/ctl" log replay --local -o 'jsonpath={range .aggregates[*]}{.aggregate}{"\n"}{end}' | grep -v '^daemon/\|^remediation/fleet$' | while read -r aggregate; do
  "$work/ctl" log replay --local --aggregate "$aggregate" -o json | tr -d '\n' && echo
done > kept/states.jsonl
rm -rf .scute/runs .scute/scute.lock && mv .scute log
tar -c --sort=name --owner=0 --group=0 log kept | gzip -9 > "$here/../log.tar.gz"
ls -l "$here/.."
