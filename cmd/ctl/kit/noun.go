package kit

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/output"
	"scute.dev/cmd/ctl/show"
	"scute.dev/cmd/ctl/source"
	"scute.dev/eventlog"
	"scute.dev/internal/trust/statuses"
)

// Noun is a kind of thing that commands are about; one of them is a T.
type Noun[T any] struct {
	// Name of one, Plural of several, and further names that are accepted.
	Name, Plural string
	Short        []string
	// A is how one is asked for: "a move".
	A string
	// Resource is what -o name calls one: "move.scute.dev".
	Resource string

	// InCluster reads the resources, InLog an event log.
	InCluster func(c *connect.Cluster, notice func(error)) source.Source[T]
	InLog     func(*connect.Log) *source.Logged[T]
	// Ended reads one whose resource is not in the cluster; nil: there is none then.
	Ended func(ctx context.Context, p *Place[T], key types.NamespacedName, notFound error) (T, error)
	// Whole adds what only the log knows, where it can be reached; nil: nothing.
	Whole func(ctx context.Context, p *Place[T], t T) T

	Key   func(T) types.NamespacedName
	Phase func(T) string
	// Tasks are the parts of one that can be named with --task; nil: none.
	Tasks func(T) []string
	// Log is the aggregate that has the events of one; ok is false when it is not in a log yet.
	Log func(T) (a eventlog.Aggregate, ok bool)
	// Events are those of a commit that are about a thing, told in the order of the log; nil: all.
	Events func(T) func(eventlog.Record) ([]show.Event, error)

	// Printed writes what a task of one printed; nil: there are no tasks.
	Printed func(ctx context.Context, p *Place[T], t T, task string) error

	// Header and Row are those of the table. Data is one of them, or a list of them, for programs.
	Header show.Row
	Row    func(v show.View, t T) show.Row
	Data   func(list []T, one bool) any
	// Describe is all there is to say of one but its timeline. p.Log is nil where the log could not be reached.
	Describe func(ctx context.Context, p *Place[T], t T) ([]string, error)
	// DescribeLong, WatchLong and GetLong are the help texts.
	GetLong, DescribeLong, WatchLong string

	// Standing is what a terminal shows of one while it is followed, News what a pipe gets.
	Standing func(v show.View, t T) []string
	News     func(T) []News
	// Conditions of its status, one of which may say that nothing is driven because of the event log; nil: none does.
	Conditions func(T) []metav1.Condition
	// Copy is one that does not change any more; nil: none does.
	Copy func(T) T
	// Over says that nothing more happens to it by itself.
	Over func(T) bool
	// Bad says that one which is over ended badly: exit status 1.
	Bad func(T) bool
	// Finish says how one that is over ended, and makes an exit status of it; nil: Bad alone does.
	Finish func(ctx context.Context, p *Place[T], t T, format *output.Format) error
	// Goes says what becomes of one that is not watched any more: "the move continues without being watched".
	Goes string
	// Still says how to continue one that nothing drives; nil: nothing.
	Still func(p *Place[T], key types.NamespacedName) string
}

// News is what a pipe is told of a thing: a line whenever the text is another one.
type News struct {
	// About is a part of the thing, "" for the whole. What begins with # only tells several texts apart.
	About, Text string
	// Counting says that such a text changes all the time: it is told once a second. Two with the same value count on.
	Counting string
}

// stalled is why nothing is driven, "" if that is not because of the event log.
func (n *Noun[T]) stalled(t T) string {
	if n.Conditions == nil {
		return ""
	}
	if fault := statuses.Untrusted(n.Conditions(t)); fault != nil {
		return fault.Message
	}
	return ""
}

// none says that there are none in a namespace, "" for all: "no moves in namespace fleet".
func (n *Noun[T]) none(namespace string) string {
	if namespace == "" {
		return "no " + n.Plural
	}
	return "no " + n.Plural + " in namespace " + namespace
}

// Table lists some, one a row.
func (n *Noun[T]) Table(v show.View, list []T, namespaces, wide bool) []string {
	rows := make([]show.Row, len(list))
	for i, t := range list {
		rows[i] = n.Row(v, t)
		rows[i].Namespace = n.Key(t).Namespace
	}
	return v.Rows(n.Header, rows, namespaces, wide)
}

// Aliases are the further names of the noun in a command.
func (n *Noun[T]) Aliases() []string { return append([]string{n.Plural}, n.Short...) }
