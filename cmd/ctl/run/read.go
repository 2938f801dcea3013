package run

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/source"
	"scute.dev/eventlog"
)

// InLog reads the event log.
func InLog(log *connect.Log) *source.Log[*Run] {
	return &source.Log[*Run]{
		Log: log, Kind: eventlog.KindRun, Noun: "run",
		Key:     func(r *Run) types.NamespacedName { return keyOf(r.ID) },
		NewFold: func(id string) source.Fold[*Run] { return newFold(log, id) },
		// A run is as large as its definition, so runs with other names are not read.
		Group: func(id string) string { return keyOf(id).String() },
		MayContain: func(id string, key types.NamespacedName) bool {
			n := keyOf(id)
			return (key.Name == "" || key.Name == n.Name) && (key.Namespace == "" || key.Namespace == n.Namespace)
		},
	}
}

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

// Items returns the run.
func (f *Fold) Items() []*Run { return []*Run{f.Refresh()} }

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

// inCluster reads WorkflowRun resources. notice, if not nil, is called when a watch breaks and when it is restarted.
func inCluster(c *connect.Cluster, notice func(error)) source.Source[*Run] {
	return &source.Cluster[*v1alpha1.WorkflowRun, *Run]{
		Cluster: c, Noun: "run", Notice: notice,
		New:     func() *v1alpha1.WorkflowRun { return &v1alpha1.WorkflowRun{} },
		NewList: func() client.ObjectList { return &v1alpha1.WorkflowRunList{} },
		Convert: fromResource,
	}
}

// fromResource returns the run of a WorkflowRun.
func fromResource(w *v1alpha1.WorkflowRun) *Run {
	return &Run{
		Namespace: w.Namespace, Name: w.Name, ID: w.Status.RunID, Status: w.Status, CreatedAt: w.CreationTimestamp.Time,
	}
}
