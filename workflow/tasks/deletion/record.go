package deletion

import (
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/object"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// record is what Delete records before it acts. It keeps the entries of earlier attempts.
type record struct {
	Cluster access.Pinned  `json:"cluster,omitzero"`
	Objects []*recordEntry `json:"objects,omitempty"`
}

type recordEntry struct {
	access.ObjectRef
	UID    types.UID   `json:"uid"`
	Owners []types.UID `json:"owners,omitempty"`
	// Manifest is the object without the fields that the server sets.
	Manifest json.RawMessage `json:"manifest,omitempty"`
	// Withheld is the reason why there is no manifest.
	Withheld string `json:"withheld,omitempty"`
	// Execution is the execution that recorded the object. It is 0 for an earlier version of scute.
	Execution int `json:"execution,omitempty"`
}

// isRecreated reports whether another client created this object after the step deleted it: this
// execution recorded an object with the same name but another UID.
func (r *record) isRecreated(u *unstructured.Unstructured, execution int) bool {
	ref := access.RefOf(u).Ref()
	return slices.ContainsFunc(r.Objects, func(e *recordEntry) bool {
		return e.Ref() == ref && e.UID != u.GetUID() && e.Execution != 0 && e.Execution == execution
	})
}

// add records an object, unless an object with its UID is already recorded.
func (r *record) add(u *unstructured.Unstructured, execution int) {
	if i := slices.IndexFunc(r.Objects, func(e *recordEntry) bool { return e.UID == u.GetUID() }); i >= 0 {
		r.Objects[i].Execution = execution
		return
	}
	e := &recordEntry{ObjectRef: access.RefOf(u), UID: u.GetUID(), Execution: execution}
	for _, o := range u.GetOwnerReferences() {
		e.Owners = append(e.Owners, o.UID)
	}
	r.recordManifest(e, u)
	// Of two objects with the same name, the undo must restore the later one.
	r.Objects = slices.DeleteFunc(r.Objects, func(o *recordEntry) bool { return o.Ref() == e.Ref() })
	r.Objects = append(r.Objects, e)
}

func (r *record) recordManifest(e *recordEntry, u *unstructured.Unstructured) {
	if e.IsSecret() {
		e.Withheld = access.WithheldSecret
		return
	}
	u = u.DeepCopy()
	object.StripServerFields(u)
	u.SetFinalizers(slices.DeleteFunc(u.GetFinalizers(), func(f string) bool {
		return f == metav1.FinalizerDeleteDependents || f == metav1.FinalizerOrphanDependents
	}))
	manifest, err := json.Marshal(u.Object)
	size := len(manifest)
	for _, o := range r.Objects {
		size += len(o.Manifest)
	}
	if err != nil || len(manifest) > access.MaxRecordBytes || size > 2*access.MaxRecordBytes {
		e.Withheld = access.WithheldSize
		return
	}
	e.Manifest = manifest
}

// object returns the recorded object. If owners were created again, it refers to their new UIDs.
func (e *recordEntry) object(remade map[string]string) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(e.Manifest); err != nil {
		return nil, task.Final(fmt.Errorf("reading the recorded state of %s: %w", e.ObjectRef, err))
	}
	owners := u.GetOwnerReferences()
	for i := range owners {
		if uid, ok := remade[string(owners[i].UID)]; ok {
			owners[i].UID = types.UID(uid)
		}
	}
	if len(owners) > 0 {
		u.SetOwnerReferences(owners)
	}
	return u, nil
}
