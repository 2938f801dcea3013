package deletion

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/workflow"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// Kind deletes objects and waits until they are gone. Objects that do not exist count as deleted.
// Later attempts keep an object that was created again under the name of a deleted one.
//
// The undo creates the objects again, with new UIDs, without status, and without dependents that
// were deleted with them. It returns an error for Secrets and objects larger than 256 KiB, which
// are not recorded.
type Kind struct {
	Clusters *access.Clusters
}

// With are the inputs of Delete.
type With struct {
	// Objects to delete.
	Objects []access.ObjectRef `json:"objects,omitempty"`
	// Selector deletes all objects of a kind with these labels.
	Selector *access.ObjectSelector `json:"selector,omitempty"`
	// Cluster of the objects; the run's by default.
	Cluster access.ClusterRef `json:"cluster,omitzero"`
	// Propagation of the deletion to dependents: Background, Foreground or Orphan. Default: Background.
	Propagation metav1.DeletionPropagation `json:"propagation,omitempty"`
	// Wait until the objects are gone. Default: true.
	Wait *bool `json:"wait,omitempty"`
}

// Validate checks the inputs.
func (*Kind) Validate(with json.RawMessage) []workflow.Problem {
	w, problems := task.Decode[With](with)
	if len(problems) > 0 {
		return problems
	}
	if (len(w.Objects) == 0) == (w.Selector == nil) {
		problems.Add("objects", "exactly one of objects and selector must be set", "set either objects or selector")
	}
	for i, ref := range w.Objects {
		problems = append(problems, ref.Check(fmt.Sprintf("objects[%d]", i))...)
	}
	if w.Selector != nil {
		problems = append(problems, w.Selector.Check("selector")...)
	}
	switch w.Propagation {
	case "", metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan:
	default:
		if !task.HasReferences(string(w.Propagation)) {
			problems.Add("propagation", fmt.Sprintf("%q is unknown", w.Propagation), "use Background, Foreground or Orphan")
		}
	}
	return problems
}

type output struct {
	Objects []access.ObjectRef `json:"objects"`
	// More is the number of objects that the list omits.
	More int `json:"more,omitempty"`
}

// Run records the existing objects, deletes exactly these, and waits until they are gone.
func (d *Kind) Run(ctx context.Context, c *task.Call) (json.RawMessage, error) {
	with, err := task.ReadInputs[With](c, d.Validate)
	if err != nil {
		return nil, err
	}
	record, err := task.Recorded[record](c)
	if err != nil {
		return nil, err
	}
	cluster, pinned, err := d.Clusters.Pin(ctx, c, with.Cluster, record.Cluster, len(record.Objects) > 0)
	if err != nil {
		return nil, err
	}
	if was := record.Cluster.UID; was != "" && was != pinned.UID {
		record.Objects = nil // they were deleted on another cluster, and the undo must not create them on this one
	}
	record.Cluster = pinned
	asked := make(map[types.UID]bool)
	err = cluster.EachOf(ctx, with.Objects, with.Selector, c.Namespace, func(_ context.Context, _ access.ObjectRef, u *unstructured.Unstructured) error {
		switch {
		case u == nil:
		case record.isRecreated(u, c.Execution):
			c.Progress("keeping " + access.RefOf(u).String() + ": it was created again after the deletion started")
		default:
			record.add(u, c.Execution)
			asked[u.GetUID()] = true
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(record.Objects) > access.MaxObjects {
		return nil, task.Final(fmt.Errorf("with: there are %d objects, but a task can delete at most %d: select fewer", len(record.Objects),
			access.MaxObjects))
	}
	if err := c.Prepare(ctx, record, len(record.Objects) == 0); err != nil {
		return nil, err
	}
	propagation := cmp.Or(with.Propagation, metav1.DeletePropagationBackground)
	wait := with.Wait == nil || *with.Wait
	// Send all deletions before the first wait, because objects may wait for each other. Skip objects
	// that only an earlier attempt recorded, because an operator may have corrected the inputs.
	for _, e := range record.Objects {
		if !asked[e.UID] {
			continue
		}
		if err := c.ReacquireSlot(ctx); err != nil { // the API server may have been unavailable
			return nil, err
		}
		if err := cluster.Remove(ctx, c, e.ObjectRef, e.UID, propagation, false); err != nil {
			return nil, err
		}
	}
	out := output{Objects: []access.ObjectRef{}}
	for _, e := range record.Objects {
		if !asked[e.UID] {
			live, err := cluster.Find(ctx, e.ObjectRef)
			if err != nil {
				return nil, access.FinalIfObjectRefused(e.ObjectRef, err)
			}
			if live != nil && live.GetUID() == e.UID {
				continue // the object is kept
			}
		} else if wait {
			if err := cluster.Remove(ctx, c, e.ObjectRef, e.UID, propagation, true); err != nil {
				return nil, err
			}
		}
		if len(out.Objects) == access.MaxNamedObjects {
			out.More++
			continue
		}
		out.Objects = append(out.Objects, e.ObjectRef)
	}
	return json.Marshal(out)
}

// Undo creates the deleted objects again, owners first. It does not change an object that exists.
func (d *Kind) Undo(ctx context.Context, c *task.Call) error {
	record, err := task.Recorded[record](c)
	if err != nil || len(record.Objects) == 0 {
		return err
	}
	cluster, err := d.Clusters.OpenPinned(ctx, c, record.Cluster)
	if err != nil {
		return err
	}
	var failed []error
	remade := make(map[string]string)
	for _, e := range record.ownersFirst() {
		err := d.restore(ctx, c, cluster, e, remade)
		if err != nil && !task.IsFinal(err) {
			return err
		}
		if err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...) // final, because all of these errors are
}

// Removes reports whether the step has deleted an object, or its namespace.
func (*Kind) Removes(c *task.Call, o task.Object) bool {
	record, err := task.Recorded[record](c)
	return err == nil && slices.ContainsFunc(record.Objects, func(e *recordEntry) bool {
		return string(e.UID) == o.UID || e.IsNamespace() && e.Name == o.Namespace
	})
}

// restore creates a deleted object again. remade maps the old UIDs of restored objects to their new
// UIDs.
func (d *Kind) restore(ctx context.Context, c *task.Call, cluster *access.Cluster, e *recordEntry, remade map[string]string) error {
	live, err := cluster.Find(ctx, e.ObjectRef)
	if err != nil {
		return access.FinalIfObjectRefused(e.ObjectRef, err)
	}
	if live != nil && live.GetDeletionTimestamp() != nil {
		if err := cluster.Remove(ctx, c, e.ObjectRef, live.GetUID(), metav1.DeletePropagationBackground, true); err != nil {
			return err
		}
		if err := c.ReacquireSlot(ctx); err != nil {
			return err
		}
		live = nil
	}
	if live != nil {
		remade[string(e.UID)] = string(live.GetUID())
		return nil
	}
	if len(e.Manifest) == 0 {
		return task.Final(fmt.Errorf("%s was deleted and cannot be created again: %s: restore it by hand, then mark the task undone", e.ObjectRef, e.Withheld))
	}
	u, err := e.object(remade)
	if err != nil {
		return err
	}
	u.SetKind(e.Kind)
	if err := cluster.Create(ctx, e.ObjectRef, u); err != nil {
		return err
	}
	remade[string(e.UID)] = string(u.GetUID())
	return nil
}

func (r *record) ownersFirst() []*recordEntry {
	var ordered []*recordEntry
	left := slices.Clone(r.Objects)
	for len(left) > 0 {
		var later []*recordEntry
		for _, e := range left {
			if slices.ContainsFunc(left, func(o *recordEntry) bool { return o != e && slices.Contains(e.Owners, o.UID) }) {
				later = append(later, e)
			} else {
				ordered = append(ordered, e)
			}
		}
		if len(later) == len(left) { // the owners form a cycle: use any order
			return append(ordered, later...)
		}
		left = later
	}
	return ordered
}
