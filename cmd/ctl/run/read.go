package run

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/eventlog"
)

// keyOf returns the namespace and the name in an id: namespace/name/rest.
func keyOf(id string) types.NamespacedName {
	parts := strings.SplitN(id, "/", 3)
	if len(parts) < 3 {
		return types.NamespacedName{Name: id}
	}
	return types.NamespacedName{Namespace: parts[0], Name: parts[1]}
}

func newFold(log *connect.Log, id string) *Fold {
	f := NewFold(id)
	f.Local = log.Static
	return f
}

// Items returns a copy of the run, which later commits do not change.
func (f *Fold) Items() []*Run {
	r := *f.Refresh()
	return []*Run{&r}
}

// fold reads one run by its id.
func fold(ctx context.Context, log *connect.Log, id string) (*Fold, error) {
	records, err := log.Read(ctx, eventlog.Aggregate{Kind: eventlog.KindRun, ID: id}, 0)
	if err != nil {
		return nil, fmt.Errorf("reading run %s from the log at %s: %w", id, log.Where, err)
	}
	f := newFold(log, id)
	for _, r := range records {
		if err := f.Apply(r); err != nil {
			return nil, fmt.Errorf("reading run %s: %w", id, err)
		}
	}
	return f, nil
}

// fromResource returns the run of a WorkflowRun.
func fromResource(o runtime.Object) *Run {
	w, ok := o.(*v1alpha1.WorkflowRun)
	if !ok {
		return &Run{} // never: newNoun sets New and NewList
	}
	return &Run{
		Namespace: w.Namespace, Name: w.Name, ID: w.Status.RunID, Status: w.Status, CreatedAt: w.CreationTimestamp.Time,
	}
}
