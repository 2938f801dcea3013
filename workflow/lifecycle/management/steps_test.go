package management

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"scute.dev/workflow"
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
	"scute.dev/workflow/tasks/move"
)

// fakeBootstrap is a bootstrap cluster that is unavailable.
type fakeBootstrap struct{ exists, created, deleted bool }

func (t *fakeBootstrap) Exists(*provider.Context) (bool, error) { return t.exists, nil }

func (t *fakeBootstrap) Create(*provider.Context) (access.ClusterRef, error) {
	t.created = true
	return access.ClusterRef{}, nil
}

func (t *fakeBootstrap) Delete(*provider.Context) error {
	t.deleted = true
	return nil
}

// TestBootstrapThatDoesNotAnswerIsKept checks that a bootstrap cluster that exists and is unavailable is neither
// deleted nor recreated: it may have all objects of the cluster.
func TestBootstrapThatDoesNotAnswerIsKept(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	clusters := &access.Clusters{Local: true}
	c := provider.NewContext(ctx, &task.Call{Run: "run", Task: "task"}, clusters)
	on, spec := access.ClusterRef{Kubeconfig: t.TempDir() + "/none"}, provider.Cluster{Namespace: "fleet", Name: "prod"}

	boot, specified := &fakeBootstrap{exists: true}, Specified{Context: c, Cluster: spec}
	d := &Deps{Bootstrap: boot}
	target := provider.Target{Context: &c, Manager: on, Cluster: spec}
	if err := d.deleteBootstrap(target); err == nil || !strings.Contains(err.Error(), "fleet/prod") || boot.deleted {
		t.Errorf("deleteBootstrap: deleted %t, error %v", boot.deleted, err)
	}
	if err := d.recreateBootstrap(target, nil); err == nil || !strings.Contains(err.Error(), "does not respond") || boot.created {
		t.Errorf("recreateBootstrap: created %t, error %v", boot.created, err)
	}
	if err := d.undoBootstrap(&specified, &provider.Access{Cluster: &on}); err == nil || !strings.Contains(err.Error(), "fleet/prod") || boot.deleted {
		t.Errorf("undoBootstrap: deleted %t, error %v", boot.deleted, err)
	}
	boot.exists = false // an earlier attempt has deleted it
	if err := d.deleteBootstrap(target); err != nil || !boot.deleted {
		t.Error(err)
	}
	boot.exists, boot.deleted = true, false // it was never complete, so nothing was moved to it
	if err := d.undoBootstrap(&specified, nil); err != nil || !boot.deleted {
		t.Error(err)
	}
}

// recordingKind is a kind Move whose undo returns err; runs counts the moves that it starts.
type recordingKind struct {
	err  error
	runs int
}

func (*recordingKind) Validate(json.RawMessage) []workflow.Problem { return nil }

func (u *recordingKind) Run(ctx context.Context, c *task.Call) (json.RawMessage, error) {
	u.runs++
	return nil, c.Prepare(ctx, struct{}{}, false)
}

func (u *recordingKind) Undo(context.Context, *task.Call) error { return u.err }

// TestOnlyWhatWasMovedIsMovedBack checks that only a completed move is moved back: a move that cannot be rolled back
// for another reason may have objects on both sides.
func TestOnlyWhatWasMovedIsMovedBack(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	other := task.Final(errors.New("the Secret with the kubeconfig is gone"))
	for _, is := range []struct {
		err  error
		runs int
	}{{nil, 1}, {other, 1}, {task.Final(move.ErrMoved), 2}} {
		clusters, kind := &access.Clusters{Local: true}, &recordingKind{err: is.err}
		call := &task.Call{Run: "run", Task: "task", Record: func(context.Context, json.RawMessage, bool) error { return nil }}
		c := provider.NewContext(ctx, call, clusters)
		d := &Deps{Move: kind}
		none := provider.Target{Context: &c, Manager: access.ClusterRef{Kubeconfig: t.TempDir() + "/none"}, Cluster: provider.Cluster{Namespace: "fleet", Name: "prod"}}
		if _, err := c.Perform(pivotPart, kind, move.With{}); err != nil {
			t.Fatal(err)
		}
		_, err := d.undoPivot(none, none)
		if kind.runs != is.runs || is.runs == 1 && !errors.Is(err, is.err) {
			t.Errorf("undo error %v: %d moves, error %v", is.err, kind.runs, err)
		}
	}
}
