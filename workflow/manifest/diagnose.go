package manifest

import (
	"encoding/json"
	"slices"
	"time"

	"scute.dev/workflow"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// diagnoseTimeout is short, because a rollback and the end of the run wait for the handler.
const diagnoseTimeout = 2 * time.Minute

// addDiagnose adds a Diagnose failure handler, unless there already is one or no step works on a
// cluster. with are the handler's inputs, which a named workflow supplies. If with is nil, the
// handler reads the clusters that the steps name, or the run's own cluster.
func addDiagnose(d *workflow.Definition, with json.RawMessage) {
	const kind = "Diagnose"
	if slices.ContainsFunc(d.OnFailure, func(s workflow.Step) bool { return s.Kind == kind }) {
		return
	}
	if with == nil {
		refs, works := clustersOf(d)
		if !works {
			return
		}
		with, _ = json.Marshal(struct { // these types can always be encoded
			Cluster access.ClusterRef   `json:"cluster,omitzero"`
			Others  []access.ClusterRef `json:"others,omitempty"`
		}{refs[0], refs[1:]})
	}
	d.OnFailure = append(d.OnFailure, workflow.Step{Name: "onFailure/diagnostics", Kind: kind, With: with, Default: true, Timeout: workflow.Duration(diagnoseTimeout)})
}

// clustersOf returns the first few clusters on which the steps work. The run's own cluster comes
// first; it is also returned if no cluster is known. works reports whether any step works on a
// cluster.
func clustersOf(d *workflow.Definition) (refs []access.ClusterRef, works bool) {
	const few = 4
	own := access.ClusterRef{}
	for i := range d.Tasks {
		for _, s := range d.Tasks[i].Steps {
			if slices.Contains([]string{"Approve", "Exec", "HTTP"}, s.Kind) {
				continue
			}
			works = true
			var w struct{ Cluster access.ClusterRef }
			if json.Unmarshal(s.With, &w) != nil || task.HasReferences(w.Cluster.Kubeconfig+w.Cluster.Context) || slices.Contains(refs, w.Cluster) {
				continue
			}
			if w.Cluster == own {
				refs = slices.Insert(refs, 0, own)
			} else if len(refs) < few {
				refs = append(refs, w.Cluster)
			}
		}
	}
	if len(refs) == 0 {
		refs = append(refs, own)
	}
	return refs, works
}
