package pause

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/cmd/ctl/show"
	"scute.dev/cmd/ctl/source"
	"scute.dev/eventlog"
	"scute.dev/pause/request"
	"scute.dev/pause/runner"
)

type (
	place = kit.Place[*v1alpha1.Pause]
	noun  = kit.Noun[*v1alpha1.Pause]
)

// Commands are those about Pauses, by their verbs.
func Commands(env *cli.Env) kit.Verbs {
	n := newNoun()
	return kit.Verbs{"get": kit.Get(env, n), "describe": kit.Describe(env, n), "watch": kit.Watch(env, n), "logs": kit.Logs(env, n)}
}

// ClusterCommands are those that list clusters with what pauses them, and pause them, by their verbs.
func ClusterCommands(env *cli.Env) kit.Verbs {
	n := newNoun()
	return kit.Verbs{"get": newCmdGetClusters(env), "pause": newCmdPause(env, n), "resume": newCmdResume(env, n)}
}

func newNoun() *noun {
	return &noun{
		Name: "pause", Plural: "pauses", A: "a pause", Resource: "pause.scute.dev",
		InCluster: InCluster, InLog: inLog,
		Key:   func(p *v1alpha1.Pause) types.NamespacedName { return kit.Key(p.Namespace, p.Name) },
		Phase: func(p *v1alpha1.Pause) string { return string(p.Status.Phase) },
		Log: func(p *v1alpha1.Pause) (eventlog.Aggregate, bool) {
			return eventlog.Aggregate{Kind: eventlog.KindPause, ID: p.Status.PauseID}, p.Status.PauseID != ""
		},
		Table: func(v show.View, list []*v1alpha1.Pause, namespaces, wide bool) []string {
			return view{v}.table(list, namespaces, wide)
		},
		Data: kit.Resources[*v1alpha1.Pause]("Pause", func() client.ObjectList { return &v1alpha1.PauseList{} }),
		Describe: func(_ context.Context, p *place, o *v1alpha1.Pause) ([]string, error) {
			return Describe(p.View(), o), nil
		},
		Standing: func(v show.View, p *v1alpha1.Pause) []string { return append(view{v}.standing(p), view{v}.lists(p)...) },
		News: func(p *v1alpha1.Pause) []kit.News {
			return []kit.News{{Text: fact(p), Counting: string(p.Status.Phase)}}
		},
		Conditions: func(p *v1alpha1.Pause) []metav1.Condition { return p.Status.Conditions },
		Over:       settled,
		Bad:        func(p *v1alpha1.Pause) bool { return !settled(p) },
		Goes:       "the clusters stay paused without being watched",
		WatchLong:  "A pause is followed until every object has acknowledged it.",
	}
}

// settled says that every object is at rest, or that the pause is over.
func settled(p *v1alpha1.Pause) bool {
	return p.Status.Phase == v1alpha1.PauseAcknowledged && p.Status.Counts.Pending == 0 || p.Status.FinishedAt != nil
}

// InCluster reads the resources.
func InCluster(c *connect.Cluster, notice func(error)) source.Source[*v1alpha1.Pause] {
	return &source.Cluster[*v1alpha1.Pause, *v1alpha1.Pause]{
		Cluster: c, Noun: "pause", Notice: notice,
		New:     func() *v1alpha1.Pause { return &v1alpha1.Pause{} },
		NewList: func() client.ObjectList { return &v1alpha1.PauseList{} },
		Of:      func(p *v1alpha1.Pause) *v1alpha1.Pause { return p },
	}
}

// inLog reads the event log: a name can be used again, and the one that was asked for last is meant.
func inLog(log *connect.Log) *source.Logged[*v1alpha1.Pause] {
	return &source.Logged[*v1alpha1.Pause]{
		Log: log, Kind: eventlog.KindPause, Noun: "pause",
		Begin: func(id string) source.Fold[*v1alpha1.Pause] { return NewFold(id) },
	}
}

// Fold is one pause of the log.
type Fold struct {
	id   string
	view *runner.Pauses
}

// NewFold begins with nothing that is known of a pause.
func NewFold(id string) *Fold { return &Fold{id: id, view: runner.NewPauses(nil)} }

// Apply takes a commit in.
func (f *Fold) Apply(r eventlog.Record) error {
	_ = f.view.Apply(r) // what cannot be read is told in the status
	return nil
}

// Items are the Pause, once it was asked for.
func (f *Fold) Items() []source.Item[*v1alpha1.Pause] {
	spec, known := f.view.Spec(f.id)
	if !known {
		return nil
	}
	status, _ := f.view.Status(f.id)
	return []source.Item[*v1alpha1.Pause]{{Key: types.NamespacedName{Namespace: spec.Namespace, Name: spec.Name}, Value: FromLog(spec, status)}}
}

// Pause is the Pause; nil until it was asked for.
func (f *Fold) Pause() *v1alpha1.Pause {
	for _, item := range f.Items() {
		return item.Value
	}
	return nil
}

// Look calls fn with all that is known of the pause, which is more than a status has. fn keeps nothing of it.
func (f *Fold) Look(fn func(*request.State)) {
	f.view.Look(f.id, func(s *request.State) {
		if s != nil {
			fn(s)
		}
	})
}

// FromLog is the resource that a spec in the log was made from, and its status.
func FromLog(spec request.Spec, status v1alpha1.PauseStatus) *v1alpha1.Pause {
	p := &v1alpha1.Pause{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: "Pause"},
		ObjectMeta: metav1.ObjectMeta{Namespace: spec.Namespace, Name: spec.Name, UID: types.UID(spec.UID)},
		Spec: v1alpha1.PauseSpec{
			Clusters: spec.Clusters, Reason: spec.Reason,
			Timeouts: v1alpha1.PauseTimeouts{Acknowledge: duration(spec.Acknowledge), Awake: duration(spec.Awake)},
		},
		Status: status,
	}
	if spec.BySelector {
		p.Spec.Selector = &metav1.LabelSelector{}
		if selector, err := metav1.ParseToLabelSelector(spec.Selector); err == nil {
			p.Spec.Selector = selector
		}
	}
	for kind, d := range spec.AckKinds {
		if p.Spec.Timeouts.AcknowledgeKinds == nil {
			p.Spec.Timeouts.AcknowledgeKinds = make(map[string]v1alpha1.Duration)
		}
		p.Spec.Timeouts.AcknowledgeKinds[kind] = *duration(d)
	}
	if status.StartedAt != nil {
		p.CreationTimestamp = *status.StartedAt
	}
	return p
}
