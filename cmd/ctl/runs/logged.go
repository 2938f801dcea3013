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
type Logged = source.Logged[*Run]

// InLog reads the event log.
func InLog(log *reach.Log) *Logged {
	return &Logged{
		Log: log, Kind: eventlog.KindRun, Noun: noun,
		Begin: func(id string) source.Fold[*Run] { return begin(log, id) },
		// A run is as big as its definition: those that the name rules out are not read.
		Group: func(id string) string { return named(id).String() },
		May: func(id string, key types.NamespacedName) bool {
			n := named(id)
			return (key.Name == "" || key.Name == n.Name) && (key.Namespace == "" || key.Namespace == n.Namespace)
		},
	}
}

// named is the namespace and the name in an id: namespace/name/rest.
func named(id string) types.NamespacedName {
	parts := strings.SplitN(id, "/", 3)
	if len(parts) < 3 {
		return types.NamespacedName{Name: id}
	}
	return types.NamespacedName{Namespace: parts[0], Name: parts[1]}
}

func begin(log *reach.Log, id string) *Fold {
	f := NewFold(id)
	f.Local = log.Static
	return f
}

// Items is the run, under the name that its id has.
func (f *Fold) Items() []source.Item[*Run] {
	return []source.Item[*Run]{{Key: named(f.ID), Value: f.Look()}}
}

// Read folds one run by its id.
func Read(ctx context.Context, log *reach.Log, id string) (*Fold, error) {
	records, err := log.Read(ctx, eventlog.Aggregate{Kind: eventlog.KindRun, ID: id}, 0)
	if err != nil {
		return nil, fmt.Errorf("reading run %s from the log at %s: %w", id, log.Where, err)
	}
	f := begin(log, id)
	for _, r := range records {
		if err := f.Apply(r); err != nil {
			return nil, fmt.Errorf("reading run %s: %w", id, err)
		}
	}
	return f, nil
}
