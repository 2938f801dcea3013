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
	"scute.dev/mover/transfer"
	"scute.dev/pause"
	"scute.dev/pause/hold"
	"scute.dev/workflow"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// Kind pauses the controllers of Cluster API, Flux and EKS Anywhere during a run.
//
// It records each object's pause state first. An object that was already paused stays unchanged.
// The engine undoes a Pause at the end of every run, whatever the outcome; a Resume task does it
// earlier.
//
// Only Cluster API's controllers acknowledge a pause. Objects of Flux and EKS Anywhere count as
// settled when no work is in progress on them and they no longer change.
type Kind struct {
	Clusters *access.Clusters
}

// With are the inputs of Pause. Several selections may be combined.
type With struct {
	// Clusters are names of Cluster API Clusters in Namespace.
	Clusters []string `json:"clusters,omitempty"`
	// All selects all Cluster API Clusters of Namespace.
	All bool `json:"all,omitempty"`
	// Kustomizations and HelmReleases are objects of Flux to suspend.
	Kustomizations []PauseRef `json:"kustomizations,omitempty"`
	HelmReleases   []PauseRef `json:"helmReleases,omitempty"`
	// EKSA are names of EKS Anywhere Clusters in Namespace. Their datacenter and machine configurations are paused too.
	EKSA []string `json:"eksa,omitempty"`
	// Namespace of the clusters; the run's by default.
	Namespace string `json:"namespace,omitempty"`
	// Cluster is the API server with the objects; the run's by default.
	Cluster access.ClusterRef `json:"cluster,omitzero"`
	// Acknowledge is the timeout for the acknowledgement by all objects. Default: 5m.
	Acknowledge workflow.Duration `json:"acknowledge,omitzero"`
}

// PauseRef names an object of Flux.
type PauseRef struct {
	// Namespace defaults to the run's.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// Record is the record of a pause. The undo, or a Resume task, restores it.
type Record struct {
	// Holder is the name of the holder in the annotations of the objects.
	Holder    string        `json:"holder"`
	Cluster   access.Pinned `json:"cluster,omitzero"`
	Namespace string        `json:"namespace,omitempty"`
	// Clusters and All are copies of the inputs that select Cluster API Clusters.
	Clusters []string                      `json:"clusters,omitempty"`
	All      bool                          `json:"all,omitempty"`
	Roots    []hold.Root                   `json:"roots,omitempty"`
	Stale    map[object.Ref]pause.Baseline `json:"stale,omitempty"`
	// Switches are the objects of Flux and EKS Anywhere.
	Switches []pausedSwitch `json:"switches,omitempty"`
}

type output struct {
	Record
	// Acknowledged counts the objects of the Clusters by the signal of their acknowledgement.
	Acknowledged map[pause.Signal]int `json:"acknowledged,omitempty"`
	// Settled are the objects whose controllers cannot acknowledge a pause.
	Settled []object.Ref `json:"settled,omitempty"`
}

const (
	acknowledgeTimeout = 5 * time.Minute
	// resumeTimeout limits the wait for controllers to resume. Exceeding it is no failure.
	resumeTimeout = 20 * time.Second
)

// Holds returns true, because the pause is undone at the end of every run.
func (*Kind) Holds() bool { return true }

// Validate checks the selection.
func (*Kind) Validate(with json.RawMessage) []workflow.Problem {
	w, problems := task.Decode[With](with)
	if len(problems) > 0 {
		return problems
	}
	if len(w.Clusters) == 0 && !w.All && len(w.Kustomizations) == 0 && len(w.HelmReleases) == 0 && len(w.EKSA) == 0 {
		problems.Add("clusters", "nothing is selected", "name clusters, set all: true, or name kustomizations, helmReleases or eksa")
	}
	if len(w.Clusters) > 0 && w.All {
		problems.Add("all", "clusters and all are both set", "set either clusters or all")
	}
	for field, refs := range map[string][]PauseRef{"kustomizations": w.Kustomizations, "helmReleases": w.HelmReleases} {
		for i, ref := range refs {
			if ref.Name == "" {
				problems.Add(fmt.Sprintf("%s[%d].name", field, i), "it is empty", "name the object")
			}
		}
	}
	if w.Acknowledge < 0 {
		problems.Add("acknowledge", "it is negative", "use a duration, for example 5m")
	}
	return problems
}

// Run records the state of the objects, pauses them and waits until all have acknowledged the pause.
func (p *Kind) Run(ctx context.Context, c *task.Call) (json.RawMessage, error) {
	w, err := task.ReadInputs[With](c, p.Validate)
	if err != nil {
		return nil, err
	}
	earlier, err := task.Recorded[Record](c)
	if err != nil {
		return nil, err
	}
	cluster, pinned, err := p.Clusters.Pin(ctx, c, w.Cluster, earlier.Cluster, earlier.Holder != "")
	if err != nil {
		return nil, classifyError(err)
	}
	h, err := newPauser(ctx, cluster, c, Record{
		Holder: c.StepKey(), Cluster: pinned, Namespace: cmp.Or(w.Namespace, c.Namespace), Clusters: w.Clusters, All: w.All,
	})
	if err != nil {
		return nil, classifyError(err)
	}
	if err := h.readState(ctx, w, earlier); err != nil {
		return nil, classifyError(err)
	}
	// Never adopted, even if all objects were paused before: the annotations must be removed.
	if err := c.Prepare(ctx, h.record, false); err != nil {
		return nil, err
	}
	out, err := h.set(ctx, cmp.Or(time.Duration(w.Acknowledge), acknowledgeTimeout))
	if err != nil {
		return nil, classifyError(err)
	}
	return json.Marshal(out)
}

// Undo restores exactly the recorded state, only on objects that still have this task's annotation.
// It uses the daemon's identity if the ServiceAccount is denied, for example in a namespace that is
// being deleted, because Cluster API does not delete a paused Cluster.
func (p *Kind) Undo(ctx context.Context, c *task.Call) error {
	record, err := task.Recorded[Record](c)
	if err != nil || len(c.Undo) == 0 {
		return err
	}
	err = restoreRecord(ctx, p.Clusters, c, record)
	if !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
		return err
	}
	daemons, ok := p.Clusters.AsDaemon(record.Cluster.ClusterRef)
	if !ok {
		return err
	}
	if again := restoreRecord(ctx, daemons, c, record); again != nil {
		return fmt.Errorf("with the daemon's own permissions, because the ServiceAccount was denied (%v): %w", err, again) //nolint:errorlint // the second error decides whether to retry
	}
	return nil
}

// classifyError makes an error final if another attempt would fail in the same way. It adds the
// remedy that an error of package transfer contains.
func classifyError(err error) error {
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
