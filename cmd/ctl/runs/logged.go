package runs

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/cmd/ctl/reach"
	"scute.dev/cmd/ctl/source"
	"scute.dev/eventlog"
)

// Logged reads runs from an event log.
type Logged struct{ source.Logged[*Run] }

// InLog reads the event log.
func InLog(log *reach.Log) *Logged {
	return &Logged{source.Logged[*Run]{
		Log: log, Kind: eventlog.KindRun, Noun: noun,
		Begin: func(id string) source.Fold[*Run] { return begin(log, id) },
		// A run is as big as its definition: those that the name rules out are not read.
		Group: func(id string) string { return named(id).String() },
		May: func(id string, key types.NamespacedName) bool {
			n := named(id)
			return (key.Name == "" || key.Name == n.Name) && (key.Namespace == "" || key.Namespace == n.Namespace)
		},
	}}
}

// named is the namespace and the name in an id: namespace/name/rest.
func named(id string) types.NamespacedName {
	parts := strings.SplitN(id, "/", 3)
	if len(parts) < 3 {
		return types.NamespacedName{Name: id}
	}
	return types.NamespacedName{Namespace: parts[0], Name: parts[1]}
}

// item makes a Fold one of a source.
type item struct{ *Fold }

func begin(log *reach.Log, id string) item {
	f := NewFold(id)
	f.Local = log.Static
	return item{f}
}

// Items is the run, under the name that its id has.
func (f item) Items() []source.Item[*Run] {
	return []source.Item[*Run]{{Key: named(f.ID), Value: f.Look()}}
}

// Fold reads one run by its id.
func (l *Logged) Fold(ctx context.Context, id string) (*Fold, error) {
	records, err := l.Log.Read(ctx, eventlog.Aggregate{Kind: eventlog.KindRun, ID: id}, 0)
	if err != nil {
		return nil, fmt.Errorf("reading run %s from the log at %s: %w", id, l.Log.Where, err)
	}
	f := begin(l.Log, id)
	for _, r := range records {
		if err := f.Apply(r); err != nil {
			return nil, fmt.Errorf("reading run %s: %w", id, err)
		}
	}
	return f.Fold, nil
}
