package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/mover/runner"
	"scute.dev/mover/transfer"
	"scute.dev/pause"
)

// seed writes moves to a log in a folder. The runner is real, and the outcomes of its steps are simulated.
//
//	seedlog FOLDER STORY ...
//
// The stories are moved, refused, waiting, verified and rolledback for moves, replaced and frozen for machines, and
// maintenance and unanswered for Pauses.
func seed(ctx context.Context, args []string) error {
	if len(args) < 2 {
		return errors.New("seedlog needs a folder and stories")
	}
	log, err := embedded.Open(ctx, embedded.Options{Dir: args[0]})
	if err != nil {
		return err
	}
	for i, name := range args[1:] {
		if err := appendMoveStory(ctx, log, name, i); err != nil {
			return errors.Join(fmt.Errorf("story %s: %w", name, err), log.Close())
		}
	}
	return log.Close()
}

// serve opens a log, prints its URL, and closes it at the end of the input.
func serve(args []string) error {
	log, err := embedded.Open(context.Background(), embedded.Options{Dir: args[0], Listen: args[1]})
	if err != nil {
		return err
	}
	fmt.Println(log.URL())
	_, _ = bufio.NewReader(os.Stdin).ReadByte()
	return log.Close()
}

// clock advances by a tenth of a second with each call.
type clock struct{ ticks atomic.Int64 }

func (c *clock) now() time.Time {
	return time.Date(2026, 7, 30, 12, 0, 0, 0, time.UTC).Add(time.Duration(c.ticks.Add(1)) * 100 * time.Millisecond)
}

func appendMoveStory(ctx context.Context, log *eventlog.Log, name string, index int) error {
	ctx, stop := context.WithTimeout(ctx, 5*time.Minute)
	defer stop()
	c := &clock{}
	c.ticks.Store(int64(index) * 600) // stories are a minute apart
	if events := machineEvents(name); events != nil {
		return appendMachineStory(ctx, log, name, events, c.now)
	}
	if events := pauseEvents(name); events != nil {
		return appendPauseStory(ctx, log, name, events, c.now)
	}
	s := &story{name: name, stop: stop}
	r := &runner.Runner{
		Log: log, Incarnation: "test-1", Now: c.now, Logger: slog.New(slog.DiscardHandler),
		Performer: func(string) runner.Performer { return s },
	}
	spec := mover.Spec{
		Namespace: "fleet", Name: name, Clusters: []string{"prod"}, Target: mover.Target{SecretName: name + "-target", SecretKey: "value"},
		Acknowledge: mover.Duration(5 * time.Minute), Create: mover.Duration(time.Hour), Resume: mover.Duration(time.Hour),
	}
	s.id = "fleet/" + name + "/0000000" + fmt.Sprint(index)
	s.runner = r
	if err := r.Request(ctx, s.id, "resource/fleet/"+name, spec); err != nil {
		return err
	}
	err := r.Drive(ctx, s.id)
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

// errStop ends a story in the middle, as if the daemon was killed.
var errStop = errors.New("the story ends here")

// story simulates the steps of a move.
type story struct {
	name, id string
	runner   *runner.Runner
	stop     func()
	attempts int
}

// Reach always succeeds.
func (s *story) Reach(context.Context, *mover.State, mover.Step) (*mover.StepFailed, error) {
	return nil, nil
}

func (s *story) Perform(ctx context.Context, state *mover.State, step mover.Step, emit transfer.Emit) (mover.Outcome, error) {
	switch step {
	case mover.RunPreflight:
		if s.name == "refused" {
			return mover.PreflightDone{Findings: []mover.Finding{
				{Severity: mover.Error, Field: "spec.selection.clusters", Message: "there is no Cluster fleet/prod", Remedy: "correct the name"},
				{Severity: mover.Error, Field: "target", Message: "it does not serve DevMachine.infrastructure.cluster.x-k8s.io", Remedy: "install the provider on the target"},
			}}, nil
		}
		return mover.PreflightDone{Clusters: []string{"prod"}}, nil
	case mover.RecordBaseline:
		before := make(map[object.Ref]pause.Baseline)
		for _, r := range objects() {
			before[r] = pause.Baseline{UID: types.UID(r.Name), Paused: object.False}
		}
		return mover.BaselineRead{Objects: before, Roots: []pause.Root{{Ref: objects()[0], UID: "prod"}}}, nil
	case mover.PauseSource:
		return mover.Paused{}, nil
	case mover.AwaitAcks:
		return s.acknowledge(ctx)
	case mover.DraftPlan:
		var items []mover.Item
		for i, r := range objects() {
			items = append(items, mover.Item{Ref: r, Version: "v1beta2", UID: types.UID(r.Name), ResourceVersion: "1", Level: min(i, 1), Cluster: "prod"})
		}
		return mover.Drafted{Items: items, Excluded: []mover.ObjectReason{{Ref: ref("", "Secret", "other"), Reason: "nothing that moves owns it"}}}, nil
	case mover.CreateCopies:
		created := make(map[object.Ref]types.UID)
		for _, r := range objects() {
			created[r] = types.UID("target-" + r.Name)
		}
		if err := emit(mover.Created{Objects: created}); err != nil {
			return nil, err
		}
		return mover.AllCreated{}, nil
	case mover.VerifyCopies:
		return mover.VerifyDone{}, nil
	case mover.DeleteSource:
		if s.name == "verified" {
			return nil, errStop
		}
		return mover.SourceEmptied{}, emit(mover.Deleted{Objects: objects()})
	case mover.RestorePauses:
		return mover.PausesRestored{}, nil
	case mover.AwaitResume:
		return mover.ResumeRead{New: objects()}, nil
	case mover.ClearTarget:
		return mover.TargetCleared{}, nil
	case mover.RestoreSource:
		return mover.RolledBack{}, nil
	default:
		return nil, fmt.Errorf("no story for step %s in phase %s", step, state.Phase)
	}
}

func (s *story) acknowledge(ctx context.Context) (mover.Outcome, error) {
	s.attempts++
	all := make(map[object.Ref]pause.Signal)
	for _, r := range objects() {
		all[r] = pause.ByCondition
	}
	machine := objects()[1]
	switch {
	case s.name == "waiting" && s.attempts > 1:
		return nil, errStop
	case s.name == "rolledback" && s.attempts > 1:
		return mover.AcksRead{}, s.runner.Abort(ctx, s.id, "user/jane", "wrong target")
	case s.name == "waiting", s.name == "rolledback":
		delete(all, machine)
		return mover.AcksRead{New: all, Pending: []mover.ObjectReason{{Ref: machine, Reason: "condition Paused is False"}}}, nil
	default:
		return mover.AcksRead{New: all, Stable: true}, nil
	}
}

func objects() []object.Ref {
	return []object.Ref{ref(object.CoreGroup, "Cluster", "prod"), ref(object.CoreGroup, "Machine", "prod-1"), ref(object.CoreGroup, "Machine", "prod-2")}
}

func ref(group, kind, name string) object.Ref {
	return object.Ref{Group: group, Kind: kind, Namespace: "fleet", Name: name}
}
