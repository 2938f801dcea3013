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
	// Short contains other names that commands accept.
	Name, Plural string
	Short        []string
	// WithArticle is the name with its article, for example "a move".
	WithArticle string
	// Resource is the type as -o name prints it, for example "move.scute.dev".
	Resource string

	// Open connects to where the objects are read. If it is nil, they are read from the cluster or
	// from a log.
	Open func(k *Kit) (*Session[T], error)
	// Omitted returns the words under which a table counts the object instead of listing it, for
	// example "running worker", or "" to list it. If Omitted is nil, all objects are listed.
	Omitted func(T) string
	// New returns an empty resource, NewList an empty list, and Convert the object that a resource
	// represents.
	New     func() client.Object
	NewList func() client.ObjectList
	Convert func(runtime.Object) T
	// Kind is the kind of the aggregates that contain the objects. NewFold returns an empty fold for
	// such an aggregate.
	Kind    eventlog.Kind
	NewFold func(log *connect.Log, id string) Fold[T]
	// Group returns the group of an aggregate. Only the last aggregate of each group is read. If it is
	// nil, all aggregates are read.
	Group func(id string) string
	// MayContain reports whether an aggregate may contain the object. If it is nil, every aggregate
	// may.
	MayContain func(id string, key types.NamespacedName) bool
	// GetEnded reads an object that no longer exists in the cluster. It is nil if this is not
	// possible.
	GetEnded func(ctx context.Context, p *Session[T], key types.NamespacedName, notFound error) (T, error)
	// AddLogDetails adds to an object what only the log contains, if the log can be reached. It is nil
	// if there are no such details.
	AddLogDetails func(ctx context.Context, p *Session[T], t T) T

	Key   func(T) types.NamespacedName
	Phase func(T) string
	// Tasks returns the names of an object's tasks, for --task. It is nil if the noun has no tasks.
	Tasks func(T) []string
	// Log returns the aggregate of an object. ok is false if the object is not in a log yet.
	Log func(T) (a eventlog.Aggregate, ok bool)
	// Events returns a reader that returns the events of one object. If it is nil, all events of the
	// aggregate are events of the object.
	Events func(T) func(eventlog.Record) ([]Event, error)

	// PrintOutput writes the output of a task. It is nil if the noun has no tasks.
	PrintOutput func(ctx context.Context, p *Session[T], t T, task string) error

	// Header and Row are the header and the rows of the table. Data returns one object or a list, for
	// JSON and YAML.
	Header Row
	Row    func(v View, t T) Row
	Data   func(list []T, one bool) any
	// Describe returns the description without the timeline. p.Log is nil if the log could not be
	// reached.
	Describe func(ctx context.Context, p *Session[T], t T) ([]string, error)
	// GetLong, DescribeLong and WatchLong are parts of the help.
	GetLong, DescribeLong, WatchLong string

	// StatusLines returns the lines that a terminal shows of a followed object. Updates returns the
	// texts from which the lines for a pipe are made.
	StatusLines func(v View, t T) []string
	Updates     func(T) []Update
	// Conditions returns the conditions of an object, which may report that the log is not trusted. It
	// may be nil.
	Conditions func(T) []metav1.Condition
	// IsFinished reports whether the object no longer changes unless a user acts.
	IsFinished func(T) bool
	// HasFailed reports whether a finished object has failed. The exit status of the command is then
	// 1.
	HasFailed func(T) bool
	// Finish prints the outcome of an object and returns the exit status as an error. If it is nil,
	// HasFailed determines the exit status.
	Finish func(ctx context.Context, p *Session[T], t T, format *cli.Format) error
	// AfterWatch describes what happens after the user stops watching, for example "the move
	// continues".
	AfterWatch string
	// ContinueHint returns a hint on how to continue an object that no process works on. It may be
	// nil.
	ContinueHint func(p *Session[T], key types.NamespacedName) string
}

// Update is a text about an object. In a pipe, a line is printed each time the text changes.
type Update struct {
	// Part names a part of the object; "" is the whole object. A name that begins with # is not
	// printed.
	Part, Text string
	// ThrottleKey limits texts with the same key to one line a second. "" means no limit.
	ThrottleKey string
}

// stalled returns why the daemon does not trust its log, and therefore processes nothing. It
// returns "" if the log is trusted.
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
