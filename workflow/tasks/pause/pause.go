package pause

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/mover/transfer"
	"scute.dev/pause"
	"scute.dev/pause/hold"
	"scute.dev/workflow"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
	"scute.dev/workflow/task/inputs"
)

// Kind keeps the controllers of others still for the time of a run: those of Cluster API, Flux and EKS Anywhere.
//
// Before it acts it records how every object stood and who had paused it. What was paused already is left as it is, and
// stays paused. The engine undoes a Pause at the end of every run, however it ends; a task Resume does it earlier.
//
// Only Cluster API's controllers say that they have taken note. Those of Flux and EKS Anywhere have no such signal: of
// their objects the pause waits until no work is in progress and nothing writes to them any more, and the output says
// "settled" rather than "acknowledged".
type Kind struct {
	Clusters *access.Clusters
}

// With are the inputs of Pause. Several selections may be combined.
type With struct {
	// Clusters are names of Cluster API Clusters in Namespace.
	Clusters []string `json:"clusters,omitempty"`
	// All selects all Cluster API Clusters of Namespace.
	All bool `json:"all,omitempty"`
	// Kustomizations and HelmReleases of Flux to suspend.
	Kustomizations []PauseRef `json:"kustomizations,omitempty"`
	HelmReleases   []PauseRef `json:"helmReleases,omitempty"`
	// EKSA are names of EKS Anywhere Clusters in Namespace. The datacenter and machine configurations that they refer to
	// are paused with them.
	EKSA []string `json:"eksa,omitempty"`
	// Namespace of the clusters; the run's by default.
	Namespace string `json:"namespace,omitempty"`
	// Cluster is the API server that has the objects; the run's own by default.
	Cluster access.ClusterRef `json:"cluster,omitzero"`
	// Acknowledge bounds the wait until all objects have acknowledged the pause. Default: 5m.
	Acknowledge workflow.Duration `json:"acknowledge,omitzero"`
}

// PauseRef names an object of Flux.
type PauseRef struct {
	// Namespace defaults to the run's.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// Record is the record of a pause: what the undo, and a task Resume, restores.
type Record struct {
	// Holder is the mark on what is held.
	Holder    string        `json:"holder"`
	Cluster   access.Pinned `json:"cluster,omitzero"`
	Namespace string        `json:"namespace,omitempty"`
	// Clusters and All select what hangs on the roots.
	Clusters []string                      `json:"clusters,omitempty"`
	All      bool                          `json:"all,omitempty"`
	Roots    []hold.Root                   `json:"roots,omitempty"`
	Stale    map[object.Ref]pause.Baseline `json:"stale,omitempty"`
	// Switches are the objects of Flux and EKS Anywhere.
	Switches []pausedSwitch `json:"switches,omitempty"`
}

// output is the output of Pause: the record, and how the objects came to rest.
type output struct {
	Record
	// Acknowledged counts the objects below the clusters by the way in which they said so.
	Acknowledged map[pause.Signal]int `json:"acknowledged,omitempty"`
	// Settled are the objects of controllers that have no way to say that they are paused.
	Settled []object.Ref `json:"settled,omitempty"`
}

const (
	acknowledge = 5 * time.Minute
	// awake bounds the wait for controllers to wake after a pause was lifted. Its end is no failure: what counts,
	// the state on the objects, is back.
	awake = 20 * time.Second
)

// Holds says that the pause is given back at the end of every run.
func (*Kind) Holds() bool { return true }

// Validate checks the selection.
func (*Kind) Validate(with json.RawMessage) []workflow.Problem {
	var w With
	problems := inputs.Strict(with, &w)
	if len(problems) > 0 {
		return problems
	}
	if len(w.Clusters) == 0 && !w.All && len(w.Kustomizations) == 0 && len(w.HelmReleases) == 0 && len(w.EKSA) == 0 {
		problems = append(problems, workflow.Problem{Field: "clusters", Message: "nothing is selected", Remedy: "name clusters, set all: true, or name kustomizations, helmReleases or eksa"})
	}
	if len(w.Clusters) > 0 && w.All {
		problems = append(problems, workflow.Problem{Field: "all", Message: "clusters are named and all are selected", Remedy: "set either clusters or all"})
	}
	for field, refs := range map[string][]PauseRef{"kustomizations": w.Kustomizations, "helmReleases": w.HelmReleases} {
		for i, ref := range refs {
			if ref.Name == "" {
				problems = append(problems, workflow.Problem{Field: fmt.Sprintf("%s[%d].name", field, i), Message: "it is empty", Remedy: "name the object"})
			}
		}
	}
	if w.Acknowledge < 0 {
		problems = append(problems, workflow.Problem{Field: "acknowledge", Message: "it is negative", Remedy: "give a duration, for example 5m"})
	}
	return problems
}

// Run records what it finds, sets the pause and waits until all is at rest.
func (p *Kind) Run(ctx context.Context, c *task.Call) (json.RawMessage, error) {
	w, err := inputs.Read[With](c, p.Validate)
	if err != nil {
		return nil, err
	}
	earlier, err := task.Recorded[Record](c)
	if err != nil {
		return nil, err
	}
	cluster, pinned, err := p.Clusters.Pin(ctx, c, w.Cluster, earlier.Cluster, earlier.Holder != "")
	if err != nil {
		return nil, retriable(err)
	}
	h, err := newHolding(ctx, cluster, c, Record{
		Holder: c.StepKey(), Cluster: pinned, Namespace: cmp.Or(w.Namespace, c.Namespace), Clusters: w.Clusters, All: w.All,
	})
	if err != nil {
		return nil, retriable(err)
	}
	if err := h.look(ctx, w, earlier); err != nil {
		return nil, retriable(err)
	}
	// Never adopted, even if all was paused before: the mark has to come off again.
	if err := c.Prepare(ctx, h.record, false); err != nil {
		return nil, err
	}
	limit := time.Duration(w.Acknowledge)
	if limit == 0 {
		limit = acknowledge
	}
	out, err := h.set(ctx, limit)
	if err != nil {
		return nil, retriable(err)
	}
	return json.Marshal(out)
}

// Undo restores exactly what was recorded, on what still has this task's mark. What the run's ServiceAccount may no longer give back, for
// example because the namespace with its RoleBindings is being deleted, the daemon gives back in its own name: a Cluster that stays paused
// is not deleted by Cluster API either.
func (p *Kind) Undo(ctx context.Context, c *task.Call) error {
	if len(c.Undo) == 0 {
		return nil
	}
	record, err := task.Recorded[Record](c)
	if err != nil {
		return err
	}
	err = Restore(ctx, p.Clusters, c, record)
	if !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
		return err
	}
	daemons, ok := p.Clusters.InDaemonsName(record.Cluster.ClusterRef)
	if !ok {
		return err
	}
	if again := Restore(ctx, daemons, c, record); again != nil {
		return fmt.Errorf("in the name of the daemon, as that of the ServiceAccount is refused (%v): %w", err, again) //nolint:errorlint // whether another attempt helps, the second one says
	}
	return nil
}

// retriable says whether another attempt can help.
func retriable(err error) error {
	var f *transfer.FinalError
	switch {
	case err == nil || task.IsFinal(err):
		return err
	case errors.As(err, &f) && f.Next != "":
		return fmt.Errorf("%w: %s", err, f.Next)
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), apierrors.IsInvalid(err):
		return task.Final(err)
	}
	return err
}

func (r *Record) selection() mover.Selection {
	return mover.Selection{Namespace: r.Namespace, Clusters: r.Clusters, All: r.All}
}
