package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/kube/settled"
	"scute.dev/view"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

const deletePart = "delete"

// deletionRecord holds the UID to delete, so that a later Cluster of the same name is kept.
type deletionRecord struct {
	UID types.UID `json:"uid,omitempty"`
}

// Delete deletes the cluster, waits until the Cluster and its machines are gone, and then deletes
// the objects that a Cleaner returns. A cluster that does not exist counts as deleted. allowed is
// called only before the deletion begins.
func (t Target) Delete(p any, allowed func() error) error {
	var objects []*unstructured.Unstructured
	if p, ok := p.(Cleaner); ok {
		var err error
		if objects, err = p.RemainingObjects(t.Context, t.Cluster); err != nil {
			return err
		}
	}
	on, err := t.open()
	if err != nil {
		return err
	}
	var this deletionRecord
	noted, err := t.Recorded(deletePart, &this)
	if err != nil {
		return err
	}
	s, err := t.readFrom(on)
	if err != nil {
		return err
	}
	if s.Object != nil && s.Object.GetDeletionTimestamp() == nil && (!noted || s.Object.GetUID() == this.UID) {
		if err := allowed(); err != nil {
			return err
		}
	}
	if !noted {
		if s.Object != nil {
			this.UID = s.Object.GetUID()
		}
		if err := t.Record(deletePart, this, this.UID == ""); err != nil {
			return err
		}
	}
	if this.UID != "" {
		if err := t.remove(this.UID); err != nil {
			return err
		}
	}
	if err := t.checkNameFree(on); err != nil {
		return err
	}
	for _, o := range objects {
		if o.GetNamespace() == "" {
			o.SetNamespace(t.Namespace)
		}
	}
	shared, err := usedByOthers(t.Context, on, objects)
	if err != nil {
		return err
	}
	for _, o := range slices.Backward(objects) {
		if o.GetKind() == "Namespace" && o.GroupVersionKind().Group == "" {
			continue // the namespace may contain other objects
		}
		if shared[object.Observe(o).Ref] {
			continue
		}
		if err := t.ReacquireSlot(); err != nil { // an earlier deletion may have yielded the slot
			return err
		}
		if err := t.removeObject(on, o); err != nil {
			return err
		}
	}
	return nil
}

// usedByOthers returns the ClusterClasses in objects that other Clusters use, and the templates of
// these classes. Cluster API denies the deletion of a class in use, but not the deletion of its
// templates.
func usedByOthers(c *Context, on *access.Cluster, objects []*unstructured.Unstructured) (map[object.Ref]bool, error) {
	shared := make(map[object.Ref]bool)
	for _, o := range objects {
		if o.GetKind() != "ClusterClass" || o.GroupVersionKind().Group != object.CoreGroup {
			continue
		}
		class, err := on.Get(c, object.Observe(o).Ref)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		why, err := usageReason(c, on, class)
		if err != nil {
			return nil, err
		}
		if why == "" {
			continue
		}
		c.Progress(fmt.Sprintf("keeping ClusterClass %s/%s with its templates: %s", class.GetNamespace(), class.GetName(), why))
		observed := object.Observe(class)
		shared[observed.Ref] = true
		for _, r := range observed.References {
			shared[r.Ref] = true
		}
	}
	return shared, nil
}

// usageReason returns why a ClusterClass must be kept, or "". If the Clusters of all namespaces
// cannot be listed, it tries to delete the class in a dry run: Cluster API's webhook sees all
// Clusters, and denies the deletion of a class in use.
func usageReason(ctx context.Context, on *access.Cluster, class *unstructured.Unstructured) (why string, err error) {
	users, all, err := usersOf(ctx, on, class)
	switch {
	case err != nil || all && len(users) == 0:
		return "", err
	case len(users) > 0:
		return "Clusters use it: " + view.First(users), nil
	}
	uid := class.GetUID()
	err = on.Kube.Do(ctx, "try to delete ClusterClass "+class.GetNamespace()+"/"+class.GetName(), func(ctx context.Context) error {
		return on.Client.Delete(ctx, class, client.DryRunAll, client.Preconditions{UID: &uid})
	})
	if apierrors.IsForbidden(err) {
		return "Clusters of namespaces that cannot be listed may use it: " + err.Error(), nil
	}
	return "", client.IgnoreNotFound(err)
}

func clusterType() kube.Type {
	return kube.Type{Group: object.CoreGroup, Kind: "Cluster", Plural: "clusters", Versions: []string{clusterv1.GroupVersion.Version}, Namespaced: true}
}

// usersOf returns the Clusters that use a ClusterClass. If the Clusters of all namespaces cannot be
// listed, it returns only those in the namespace of the class, and all is false.
func usersOf(ctx context.Context, on *access.Cluster, class *unstructured.Unstructured) (names []string, all bool, err error) {
	for _, namespace := range []string{"", class.GetNamespace()} {
		names, all = nil, namespace == ""
		err = on.Kube.List(ctx, clusterType(), namespace, func(u *unstructured.Unstructured) error {
			if f := object.Observe(u).Cluster; f != nil && f.ClassName == class.GetName() && f.ClassNamespace == class.GetNamespace() {
				names = append(names, u.GetNamespace()+"/"+u.GetName())
			}
			return nil
		})
		if !apierrors.IsForbidden(err) {
			break
		}
	}
	return names, all, err
}

// checkNameFree fails if another Cluster has the name of the deleted Cluster, because it may use
// the same objects.
func (t Target) checkNameFree(on *access.Cluster) error {
	s, err := t.readFrom(on)
	if err != nil || s.Object == nil {
		return err
	}
	return task.Final(fmt.Errorf("another Cluster %s was created after the deletion started: it and all objects of the template are kept. "+
		"Find out what created it, for example GitOps; to delete it too, start another run", t.fullName()))
}

// UndoDelete returns an error if the deletion has begun.
func (t Target) UndoDelete() error {
	if !t.Started(deletePart) {
		return nil
	}
	return task.Final(errors.New("the cluster is being deleted and cannot be restored: in a rollback, decide `mark-undone`; to delete the rest, " +
		"start another run"))
}

func (t Target) remove(uid types.UID) error {
	on, err := t.open()
	if err != nil {
		return err
	}
	return t.poll("cluster "+t.fullName()+" to be deleted", func() ([]string, error) {
		s, err := t.readFrom(on)
		switch {
		case err != nil || s.Object == nil || s.Object.GetUID() != uid: // another Cluster may have this name
			return nil, err
		case s.Object.GetDeletionTimestamp() != nil:
			return deletionProgress(s), nil
		}
		return t.requestDeletion(on, access.RefOf(s.Object), uid)
	})
}

// requestDeletion requests the deletion and returns what to wait for next. A webhook's denial is
// not final, because the webhook may not know yet that the Cluster is gone.
func (t Target) requestDeletion(on *access.Cluster, ref access.ObjectRef, uid types.UID) ([]string, error) {
	err := on.Delete(t, ref, uid, metav1.DeletePropagationBackground)
	if err != nil && !strings.Contains(err.Error(), "denied the request") {
		err = access.FinalIfObjectRefused(ref, err)
	}
	return []string{"its deletion was requested"}, err
}

func deletionProgress(s settled.State) []string {
	why := []string{fmt.Sprintf("%d machines left", len(machines(s)))}
	if paused, _, _ := object.Condition(s.Object, clusterv1.PausedCondition); paused == object.True {
		why = append(why, "the Cluster is paused: Cluster API does not delete its objects until it is resumed")
	}
	if _, _, message := object.Condition(s.Object, clusterv1.ClusterDeletingCondition); message != "" {
		why = append(why, message)
	}
	return why
}

// removeObject deletes an object and waits until it is gone, or until another object has its name.
func (t Target) removeObject(on *access.Cluster, o *unstructured.Unstructured) error {
	ref := access.RefOf(o)
	var this types.UID
	return t.poll(ref.String()+" to be deleted", func() ([]string, error) {
		u, err := on.Find(t, ref)
		switch {
		case err != nil || u == nil || this != "" && u.GetUID() != this:
			return nil, err
		case u.GetDeletionTimestamp() != nil:
			this = u.GetUID()
			return []string{"it is being deleted and waits for finalizers: " + view.First(u.GetFinalizers())}, nil
		}
		if err := t.checkNameFree(on); err != nil {
			return nil, err
		}
		this = u.GetUID()
		return t.requestDeletion(on, ref, this)
	})
}
