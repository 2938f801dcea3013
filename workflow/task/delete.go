package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/workflow"
)

// Delete deletes objects and waits until they are gone. What is not there is done.
//
// It records the objects before it deletes them, so that the undo can create them again: with new UIDs, without status,
// and without what was deleted along with them. Secrets, and what is larger than 256 KiB, are not recorded; the undo of
// these fails and says so.
type Delete struct {
	Clusters *Clusters
}

// DeleteWith are the inputs of Delete.
type DeleteWith struct {
	// Objects to delete.
	Objects []ObjectRef `json:"objects,omitempty"`
	// Selector deletes all objects of a kind that bear labels.
	Selector *ObjectSelector `json:"selector,omitempty"`
	// Cluster that has the objects; the run's own by default.
	Cluster ClusterRef `json:"cluster,omitzero"`
	// Propagation to what the objects own: Background, Foreground or Orphan. Default: Background.
	Propagation metav1.DeletionPropagation `json:"propagation,omitempty"`
	// Wait until the objects are gone. Default: true.
	Wait *bool `json:"wait,omitempty"`
}

// ObjectSelector selects objects of one kind in one namespace by their labels.
type ObjectSelector struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Namespace defaults to the run's.
	Namespace string `json:"namespace,omitempty"`
	// LabelSelector as kubectl takes it, for example "app=web,tier!=cache".
	LabelSelector string `json:"labelSelector"`
}

func (s *ObjectSelector) ref() ObjectRef {
	return ObjectRef{APIVersion: s.APIVersion, Kind: s.Kind, Namespace: s.Namespace}
}

// String is for people.
func (s *ObjectSelector) String() string {
	return fmt.Sprintf("%s with %s", s.Kind, s.LabelSelector)
}

func (s *ObjectSelector) check(field string) (problems []workflow.Problem) {
	if s.APIVersion == "" || s.Kind == "" {
		problems = append(problems, workflow.Problem{Field: field, Message: "apiVersion or kind is empty", Remedy: "give both"})
	}
	if s.LabelSelector == "" {
		problems = append(problems, workflow.Problem{Field: field + ".labelSelector", Message: "it is empty and would select everything", Remedy: "give labels, for example app=web"})
	} else if _, err := labels.Parse(s.LabelSelector); err != nil && !templated(s.LabelSelector) {
		problems = append(problems, workflow.Problem{Field: field + ".labelSelector", Message: err.Error(), Remedy: "write it as kubectl takes it, for example app=web"})
	}
	return problems
}

// listPage is how many objects one answer holds.
const listPage = 500

// list reads the selected objects; none if the kind is not there.
func (cl *Cluster) list(ctx context.Context, s *ObjectSelector, namespace string) ([]unstructured.Unstructured, error) {
	ref, known, err := cl.qualify(ctx, s.ref(), namespace)
	if err != nil || !known {
		return nil, err
	}
	selector, err := labels.Parse(s.LabelSelector)
	if err != nil {
		return nil, Final(fmt.Errorf("with.selector.labelSelector: %w", err))
	}
	var found []unstructured.Unstructured
	next := ""
	for {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(ref.gvk())
		err = cl.Kube.Do(ctx, "list "+s.String(), func(ctx context.Context) error {
			return cl.Client.List(ctx, list, client.InNamespace(ref.Namespace), client.MatchingLabelsSelector{Selector: selector}, client.Limit(listPage), client.Continue(next))
		})
		if err != nil {
			return nil, refusal(err)
		}
		found = append(found, list.Items...)
		if next = list.GetContinue(); next == "" {
			return found, nil
		}
		if len(found) > objectsLimit {
			return nil, Final(fmt.Errorf("with.selector: it selects more than %d objects: select fewer", objectsLimit))
		}
	}
}

// Validate checks the inputs.
func (*Delete) Validate(with json.RawMessage) []workflow.Problem {
	var w DeleteWith
	if problems := strict(with, &w); len(problems) > 0 {
		return problems
	}
	var problems []workflow.Problem
	if (len(w.Objects) == 0) == (w.Selector == nil) {
		problems = append(problems, workflow.Problem{Field: "objects", Message: "the objects are not given in exactly one way", Remedy: "set either objects or selector"})
	}
	for i, ref := range w.Objects {
		problems = append(problems, ref.check(fmt.Sprintf("objects[%d]", i))...)
	}
	if w.Selector != nil {
		problems = append(problems, w.Selector.check("selector")...)
	}
	switch w.Propagation {
	case "", metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan:
	default:
		if !templated(string(w.Propagation)) {
			problems = append(problems, workflow.Problem{Field: "propagation", Message: fmt.Sprintf("%q is unknown", w.Propagation), Remedy: "use Background, Foreground or Orphan"})
		}
	}
	return problems
}

// deleted is the output of Delete.
type deleted struct {
	Objects []ObjectRef `json:"objects"`
	// More objects than the list names.
	More int `json:"more,omitempty"`
}

// Run records what is there, deletes the very objects that it recorded, and waits until they are gone.
func (d *Delete) Run(ctx context.Context, c *Call) (json.RawMessage, error) {
	with, err := inputs[DeleteWith](c, d.Validate)
	if err != nil {
		return nil, err
	}
	record, err := recorded[deleteRecord](c)
	if err != nil {
		return nil, err
	}
	if len(record.Objects) > 0 {
		if err := onSameCluster(record.Cluster, with.Cluster); err != nil {
			return nil, err
		}
	}
	cluster, err := d.Clusters.Open(ctx, c, with.Cluster)
	if err != nil {
		return nil, err
	}
	record.Cluster = with.Cluster
	found, err := d.observe(ctx, c, cluster, &with)
	if err != nil {
		return nil, err
	}
	for _, u := range found {
		record.add(u)
	}
	if len(record.Objects) > objectsLimit {
		return nil, Final(fmt.Errorf("with: there are %d objects, and one task takes %d: select fewer", len(record.Objects), objectsLimit))
	}
	if err := c.Prepare(ctx, record, len(record.Objects) == 0); err != nil {
		return nil, err
	}
	propagation := with.Propagation
	if propagation == "" {
		propagation = metav1.DeletePropagationBackground
	}
	wait := with.Wait == nil || *with.Wait
	// All deletions are sent before the first is waited for: they may wait for each other.
	for _, e := range record.Objects {
		if err := cluster.remove(ctx, c, e.ObjectRef, e.UID, propagation, false); err != nil {
			return nil, err
		}
	}
	out := deleted{Objects: []ObjectRef{}}
	for _, e := range record.Objects {
		if wait {
			if err := cluster.remove(ctx, c, e.ObjectRef, e.UID, propagation, true); err != nil {
				return nil, err
			}
		}
		if len(out.Objects) == appliedNamed {
			out.More++
			continue
		}
		out.Objects = append(out.Objects, e.ObjectRef)
	}
	return json.Marshal(out)
}

func (d *Delete) observe(ctx context.Context, c *Call, cluster *Cluster, with *DeleteWith) (found []*unstructured.Unstructured, err error) {
	if with.Selector != nil {
		items, err := cluster.list(ctx, with.Selector, c.Namespace)
		for i := range items {
			found = append(found, &items[i])
		}
		return found, err
	}
	for _, ref := range with.Objects {
		ref, known, err := cluster.qualify(ctx, ref, c.Namespace)
		if err != nil {
			return nil, refusal(err)
		}
		if !known {
			continue // no kind, no object
		}
		u, err := cluster.find(ctx, ref)
		if err != nil {
			return nil, refusalOf(ref, err)
		}
		if u != nil {
			found = append(found, u)
		}
	}
	return found, nil
}

// Undo creates again what was deleted, owners first. An object that is there, by whomever, is left alone.
func (d *Delete) Undo(ctx context.Context, c *Call) error {
	record, err := recorded[deleteRecord](c)
	if err != nil || len(record.Objects) == 0 {
		return err
	}
	cluster, err := d.Clusters.Open(ctx, c, record.Cluster)
	if err != nil {
		return err
	}
	var failed []error
	anew := make(map[string]string)
	for _, e := range record.ownersFirst() {
		err := d.restore(ctx, c, cluster, e, anew)
		if err != nil && !IsFinal(err) {
			return err
		}
		if err != nil {
			failed = append(failed, err)
		}
	}
	if len(failed) > 0 {
		return Final(errors.Join(failed...))
	}
	return nil
}

// restore creates one object again; anew are the UIDs of those that were, by the old ones.
func (d *Delete) restore(ctx context.Context, c *Call, cluster *Cluster, e *deleteEntry, anew map[string]string) error {
	live, err := cluster.find(ctx, e.ObjectRef)
	if err != nil {
		return refusalOf(e.ObjectRef, err)
	}
	if live != nil && live.GetDeletionTimestamp() != nil {
		if err := cluster.remove(ctx, c, e.ObjectRef, live.GetUID(), metav1.DeletePropagationBackground, true); err != nil {
			return err
		}
		live = nil
	}
	if live != nil {
		anew[string(e.UID)] = string(live.GetUID())
		return nil
	}
	if len(e.Manifest) == 0 {
		return Final(fmt.Errorf("%s was deleted and cannot be created again: %s: restore it by hand, then mark the task undone", e.ObjectRef, e.Withheld))
	}
	u, err := e.object(anew)
	if err != nil {
		return err
	}
	if err := cluster.create(ctx, e.ObjectRef, u); err != nil {
		return err
	}
	anew[string(e.UID)] = string(u.GetUID())
	return nil
}

// ownersFirst orders the entries so that an owner comes before what it owns.
func (r *deleteRecord) ownersFirst() []*deleteEntry {
	var ordered []*deleteEntry
	left := slices.Clone(r.Objects)
	for len(left) > 0 {
		var later []*deleteEntry
		for _, e := range left {
			if slices.ContainsFunc(left, func(o *deleteEntry) bool { return o != e && slices.Contains(e.Owners, o.UID) }) {
				later = append(later, e)
			} else {
				ordered = append(ordered, e)
			}
		}
		if len(later) == len(left) { // a circle of owners: any order will do
			return append(ordered, later...)
		}
		left = later
	}
	return ordered
}
