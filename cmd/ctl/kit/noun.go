package kit

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/eventlog"
	"scute.dev/internal/trust"
	"scute.dev/view"
)

// Noun describes a type of objects that commands are about. T represents one object.
type Noun[T any] struct {
	// Short contains further accepted names.
	Name, Plural string
	Short        []string
	// WithArticle is for example "a move".
	WithArticle string
	// Resource is the type as -o name prints it, for example "move.scute.dev".
	Resource string

	// Open returns where the objects are read. If it is nil, that is the cluster or a log.
	Open func(k *Kit) (*Session[T], error)
	// Omitted returns what a table counts instead of listing the object, for example "running
	// worker", or "". If it is nil, all objects are listed.
	Omitted func(T) string
	// New and NewList return an empty resource and list, and Convert the object of a resource.
	New     func() client.Object
	NewList func() client.ObjectList
	Convert func(runtime.Object) T
	// Kind is the kind of the aggregates with the objects, and NewFold returns an empty fold.
	Kind    eventlog.Kind
	NewFold func(log *connect.Log, id string) Fold[T]
	// Group returns an aggregate's group, of which only the last one is read; nil reads all.
	Group func(id string) string
	// MayContain reports whether an aggregate may contain the object. If it is nil, each may.
	MayContain func(id string, key types.NamespacedName) bool
	// GetEnded reads an object that no longer exists in the cluster; nil if this is not possible.
	GetEnded func(ctx context.Context, p *Session[T], key types.NamespacedName, notFound error) (T, error)
	// AddLogDetails adds what only the log contains, if it can be reached; nil if there is nothing.
	AddLogDetails func(ctx context.Context, p *Session[T], t T) T

	Key   func(T) types.NamespacedName
	Phase func(T) string
	// Tasks returns the names of an object's tasks for --task; nil if the noun has none.
	Tasks func(T) []string
	// Log returns the aggregate of an object. ok is false if the object is not in a log yet.
	Log func(T) (a eventlog.Aggregate, ok bool)
	// Events returns a reader for an object's events; nil if these are all of its aggregate.
	Events func(T) func(eventlog.Record) ([]Event, error)

	// PrintOutput writes the output of a task; nil if the noun has no tasks.
	PrintOutput func(ctx context.Context, p *Session[T], t T, task string) error

	// Header and Row are those of the table. Data returns one object or a list, for JSON and YAML.
	Header Row
	Row    func(v View, t T) Row
	Data   func(list []T, one bool) any
	// Describe omits the timeline. p.Log is nil if the log could not be reached.
	Describe func(ctx context.Context, p *Session[T], t T) ([]string, error)
	// GetLong, DescribeLong and WatchLong are parts of the help.
	GetLong, DescribeLong, WatchLong string

	// StatusLines are for a followed object on a terminal, and Updates for a pipe.
	StatusLines func(v View, t T) []string
	Updates     func(T) []Update
	// Conditions may report that the log is not trusted. It may be nil.
	Conditions func(T) []metav1.Condition
	// IsFinished reports whether the object no longer changes unless a user acts.
	IsFinished func(T) bool
	// HasFailed reports whether a finished object failed: exit status 1.
	HasFailed func(T) bool
	// Finish prints the outcome and returns the exit status as an error; nil uses HasFailed.
	Finish func(ctx context.Context, p *Session[T], t T, format *cli.Format) error
	// AfterWatch is what happens after the user stops, for example "the move continues".
	AfterWatch string
	// ContinueHint returns how to continue an object that no process works on. It may be nil.
	ContinueHint func(p *Session[T], key types.NamespacedName) string
}

// Update is a text about an object. A pipe prints a line each time the text changes.
type Update struct {
	// Part names a part of the object, "" for all of it. A name that begins with # is not printed.
	Part, Text string
	// ThrottleKey limits texts with the same key to one line per second; "" is no limit.
	ThrottleKey string
}

// stalled returns why the daemon does not trust its log, and so processes nothing, or "".
func (n *Noun[T]) stalled(t T) string {
	if n.Conditions == nil {
		return ""
	}
	if fault := trust.FaultIn(n.Conditions(t)); fault != nil {
		return fault.Message
	}
	return ""
}

func (n *Noun[T]) emptyMessage(namespace string) string {
	if namespace == "" {
		return "no " + n.Plural
	}
	return "no " + n.Plural + " in namespace " + namespace
}

// Table returns a table with a row for each object that is not omitted.
func (n *Noun[T]) Table(v View, list []T, namespaces, wide bool) []string {
	var rows []Row
	omitted, what := 0, ""
	for _, t := range list {
		if n.Omitted != nil && n.Omitted(t) != "" {
			omitted, what = omitted+1, n.Omitted(t)
			continue
		}
		row := n.Row(v, t)
		row.Namespace = n.Key(t).Namespace
		rows = append(rows, row)
	}
	lines := v.Rows(n.Header, rows, namespaces, wide)
	if omitted > 0 {
		lines = append(lines, fmt.Sprintf("and %s: --all lists them", view.Count(omitted, what)))
	}
	return lines
}

// Aliases returns the other names of the noun's commands.
func (n *Noun[T]) Aliases() []string { return append([]string{n.Plural}, n.Short...) }
