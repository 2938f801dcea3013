package task

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/kube"
)

// deleteRecord is what Delete records before it acts. What an earlier attempt recorded stays.
type deleteRecord struct {
	Cluster ClusterRef     `json:"cluster,omitzero"`
	Objects []*deleteEntry `json:"objects,omitempty"`
}

// deleteEntry is one object that is going to be deleted.
type deleteEntry struct {
	ObjectRef
	UID    types.UID   `json:"uid"`
	Owners []types.UID `json:"owners,omitempty"`
	// Manifest is the object without what the server keeps about it.
	Manifest json.RawMessage `json:"manifest,omitempty"`
	// Withheld is why there is no manifest.
	Withheld string `json:"withheld,omitempty"`
}

// add records an object, unless it is recorded already. A namesake that was made after the recorded one is another.
func (r *deleteRecord) add(u *unstructured.Unstructured) {
	if slices.ContainsFunc(r.Objects, func(e *deleteEntry) bool { return e.UID == u.GetUID() }) {
		return
	}
	e := &deleteEntry{ObjectRef: refOf(u), UID: u.GetUID()}
	for _, o := range u.GetOwnerReferences() {
		e.Owners = append(e.Owners, o.UID)
	}
	r.keep(e, u)
	// Of two objects with one name the later one is what would be put back.
	r.Objects = slices.DeleteFunc(r.Objects, func(o *deleteEntry) bool { return o.plain() == e.plain() })
	r.Objects = append(r.Objects, e)
}

func (r *deleteRecord) keep(e *deleteEntry, u *unstructured.Unstructured) {
	if e.secret() {
		e.Withheld = withheldSecret
		return
	}
	u = u.DeepCopy()
	stripServerFields(u)
	u.SetFinalizers(slices.DeleteFunc(u.GetFinalizers(), func(f string) bool {
		return f == metav1.FinalizerDeleteDependents || f == metav1.FinalizerOrphanDependents
	}))
	manifest, err := json.Marshal(u.Object)
	size := len(manifest)
	for _, o := range r.Objects {
		size += len(o.Manifest)
	}
	if err != nil || len(manifest) > recordLimit || size > 2*recordLimit {
		e.Withheld = withheldSize
		return
	}
	e.Manifest = manifest
}

// object is the recorded object, with references to owners that were created anew.
func (e *deleteEntry) object(anew map[string]string) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(e.Manifest); err != nil {
		return nil, Final(fmt.Errorf("reading how %s was: %w", e.ObjectRef, err))
	}
	owners := u.GetOwnerReferences()
	for i := range owners {
		if uid, ok := anew[string(owners[i].UID)]; ok {
			owners[i].UID = types.UID(uid)
		}
	}
	if len(owners) > 0 {
		u.SetOwnerReferences(owners)
	}
	return u, nil
}

// create makes an object. One that is there already is no error, and is what u is afterwards: a try that got no answer may
// have made it.
func (cl *Cluster) create(ctx context.Context, ref ObjectRef, u *unstructured.Unstructured) error {
	err := cl.Kube.Do(ctx, "create "+ref.String(), func(ctx context.Context) error {
		return cl.Client.Create(ctx, u, client.FieldOwner(kube.FieldManager))
	})
	if !apierrors.IsAlreadyExists(err) {
		return refusalOf(ref, err)
	}
	live, err := cl.find(ctx, ref)
	if err == nil && live == nil {
		err = fmt.Errorf("%s was there, and is gone again", ref)
	}
	if err != nil {
		return refusalOf(ref, err)
	}
	u.Object = live.Object
	return nil
}
