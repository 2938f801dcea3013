package pause

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
	"scute.dev/pause/request"
	"scute.dev/pause/runner"
)

type (
	session = kit.Session[*v1alpha1.Pause]
	noun    = kit.Noun[*v1alpha1.Pause]
)

// Commands returns the commands about Pauses by verb.
func Commands(env *cli.Env) kit.Verbs {
	n := newNoun()
	return kit.Verbs{"get": kit.Get(env, n), "describe": kit.Describe(env, n), "watch": kit.Watch(env, n), "logs": kit.Logs(env, n)}
}

// ClusterCommands returns the commands that list, pause and resume clusters, by verb.
func ClusterCommands(env *cli.Env) kit.Verbs {
	n := newNoun()
	return kit.Verbs{"get": newCmdGetClusters(env), "pause": newCmdPause(env, n), "resume": newCmdResume(env, n)}
}

func newNoun() *noun {
	return kit.Resource(&noun{
		Name: "pause", Plural: "pauses", WithArticle: "a pause", Kind: eventlog.KindPause,
		New: func() client.Object { return &v1alpha1.Pause{} }, NewList: func() client.ObjectList { return &v1alpha1.PauseList{} },
		NewFold: func(_ *connect.Log, id string) kit.Fold[*v1alpha1.Pause] { return NewFold(id) },
		Header:  kit.Row{Cells: []string{"NAME", "PHASE", "SINCE", "CLUSTERS", "ACKNOWLEDGED", "AGE", "REASON"}, Wide: []string{"MESSAGE"}},
		Row:     row,
		Updates: func(p *v1alpha1.Pause) []kit.Update {
			return []kit.Update{{Text: fact(p), ThrottleKey: string(p.Status.Phase)}}
		},
		IsFinished: settled,
		HasFailed:  func(p *v1alpha1.Pause) bool { return !settled(p) },
		AfterWatch: "the clusters stay paused",
		WatchLong:  "A pause is followed until every object has acknowledged it.",
	}, "Pause", status)
}

// settled reports whether every object has acknowledged the pause, or whether the pause has ended.
func settled(p *v1alpha1.Pause) bool {
	return p.Status.Phase == v1alpha1.PauseAcknowledged && p.Status.Counts.Pending == 0 || p.Status.FinishedAt != nil
}

// InCluster returns a source that reads the API server.
func InCluster(c *connect.Cluster, notice func(error)) kit.Source[*v1alpha1.Pause] {
	return newNoun().InCluster(c, notice)
}

// Fold is the state of a pause, computed from its commits.
type Fold struct {
	id   string
	view *runner.Pauses
}

// NewFold returns a Fold without commits.
func NewFold(id string) *Fold { return &Fold{id: id, view: runner.NewPauses()} }

// Apply applies a commit.
func (f *Fold) Apply(r eventlog.Record) error {
	_ = f.view.Apply(r) // the status reports an unreadable event
	return nil
}

// Items returns the Pause, if it is requested.
func (f *Fold) Items() []*v1alpha1.Pause {
	if p := f.resource(); p != nil {
		return []*v1alpha1.Pause{p}
	}
	return nil
}

// resource returns the Pause, rebuilt from its spec in the log. It returns nil if the Pause is not
// requested yet.
func (f *Fold) resource() *v1alpha1.Pause {
	spec, known := request.Spec{}, false
	f.WithState(func(s *request.State) { spec, known = s.Spec, true })
	if !known {
		return nil
	}
	status, _ := f.view.Status(f.id)
	p := &v1alpha1.Pause{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: "Pause"},
		ObjectMeta: metav1.ObjectMeta{Namespace: spec.Namespace, Name: spec.Name, UID: types.UID(spec.UID)},
		Spec: v1alpha1.PauseSpec{
			Clusters: spec.Clusters, Selector: kit.Selector(spec.BySelector, spec.Selector), Reason: spec.Reason,
			Timeouts: v1alpha1.PauseTimeouts{
				Acknowledge: kit.Duration(spec.Acknowledge), AcknowledgeKinds: kit.Durations(spec.AckKinds), Resume: kit.Duration(spec.Resume),
			},
		},
		Status: status,
	}
	if status.StartedAt != nil {
		p.CreationTimestamp = *status.StartedAt
	}
	return p
}

// WithState calls fn with the state of the pause. fn must not retain any part of it.
func (f *Fold) WithState(fn func(*request.State)) {
	f.view.ReadState(f.id, func(s *request.State) {
		if s != nil {
			fn(s)
		}
	})
}
