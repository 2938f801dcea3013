package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/kube/settled"
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/lifecycle/sequence"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

const deletePart = "delete"

// deleting is which cluster it is that a run deletes: never one that was made later under the same name.
type deleting struct {
	UID types.UID `json:"uid,omitempty"`
}

// Delete deletes a cluster and waits until it is gone with all its machines; then the other objects that it was made of,
// of which nothing is left to be deleted with it, if the provider is a Cleaner. A cluster that is not there is deleted. allowed is asked
// right before the deletion, and has no more to say once that has begun.
func Delete(c *sequence.Context, p any, manager access.ClusterRef, spec provider.Cluster, allowed func() error) error {
	var objects []*unstructured.Unstructured
	if p, ok := p.(provider.Cleaner); ok {
		var err error
		if objects, err = p.LeftObjects(c, spec); err != nil {
			return err
		}
	}
	on, err := c.Open(manager)
	if err != nil {
		return err
	}
	var this deleting
	noted, err := c.Noted(deletePart, &this)
	if err != nil {
		return err
	}
	s, err := look(c, on, spec.Namespace, spec.Name)
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
		if err := c.Note(deletePart, this, this.UID == ""); err != nil {
			return err
		}
	}
	if this.UID != "" {
		if err := remove(c, manager, spec, this.UID); err != nil {
			return err
		}
	}
	if err := vacant(c, on, spec); err != nil {
		return err
	}
	for _, o := range objects {
		if o.GetNamespace() == "" {
			o.SetNamespace(spec.Namespace)
		}
	}
	shared, err := ofOthers(c, on, objects)
	if err != nil {
		return err
	}
	for _, o := range slices.Backward(objects) {
		if o.GetKind() == "Namespace" && o.GroupVersionKind().Group == "" {
			continue // others may live in it
		}
		if shared[object.Observe(o).Ref] {
			continue
		}
		if err := c.WorksAgain(); err != nil { // it may have waited until the cluster, or the one before, was gone
			return err
		}
		if err := removeObject(c, on, spec, o); err != nil {
			return err
		}
	}
	return nil
}

// ofOthers are the ClusterClasses among the objects that other Clusters use, with the templates that these refer to. Cluster API lets nobody
// delete such a class, but its templates.
func ofOthers(c *sequence.Context, on *access.Cluster, objects []*unstructured.Unstructured) (map[object.Ref]bool, error) {
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
		users, all, err := usersOf(c, on, class)
		if err != nil {
			return nil, err
		}
		why := "Clusters use it: " + access.Few(users)
		if len(users) == 0 && all {
			continue
		}
		if len(users) == 0 {
			if why, err = denied(c, on, class); err != nil {
				return nil, err
			}
			if why == "" {
				continue
			}
		}
		c.Progress(fmt.Sprintf("leaving ClusterClass %s/%s with its templates: %s", class.GetNamespace(), class.GetName(), why))
		seen := object.Observe(class)
		shared[seen.Ref] = true
		for _, r := range seen.References {
			shared[r.Ref] = true
		}
	}
	return shared, nil
}

// denied is why a ClusterClass cannot be deleted; "" if it can. Cluster API, which sees all namespaces, denies that of one that Clusters use.
func denied(ctx context.Context, on *access.Cluster, class *unstructured.Unstructured) (why string, err error) {
	uid := class.GetUID()
	err = on.Kube.Do(ctx, "try to delete ClusterClass "+class.GetNamespace()+"/"+class.GetName(), func(ctx context.Context) error {
		return on.Client.Delete(ctx, class, client.DryRunAll, client.Preconditions{UID: &uid})
	})
	if apierrors.IsForbidden(err) {
		return "Clusters of other namespaces may use it, which cannot be listed: " + err.Error(), nil
	}
	return "", client.IgnoreNotFound(err)
}

// clusters is the kind Cluster.
func clusters() kube.Type {
	return kube.Type{Group: object.CoreGroup, Kind: "Cluster", Plural: "clusters", Versions: []string{clusterv1.GroupVersion.Version}, Namespaced: true}
}

// usersOf are the Clusters of a ClusterClass. Who may not list those of all namespaces sees those of the namespace of the class.
func usersOf(ctx context.Context, on *access.Cluster, class *unstructured.Unstructured) (names []string, all bool, err error) {
	for _, namespace := range []string{"", class.GetNamespace()} {
		names, all = nil, namespace == ""
		err = on.Kube.List(ctx, clusters(), namespace, func(u *unstructured.Unstructured) error {
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

// vacant fails if another Cluster has the name of the one that was deleted. What that one was made from may be what this one is made of.
func vacant(ctx context.Context, on *access.Cluster, spec provider.Cluster) error {
	s, err := look(ctx, on, spec.Namespace, spec.Name)
	if err != nil || s.Object == nil {
		return err
	}
	return task.Final(fmt.Errorf("there is another Cluster %s/%s, made since the deletion began: it and all objects of the template stay. "+
		"Find out what made it (GitOps?); to delete it too, start another run", spec.Namespace, spec.Name))
}

// Undelete is what Delete has for an inverse: none, once it has begun.
func Undelete(c *sequence.Context) error {
	if !c.Began(deletePart) {
		return nil
	}
	return task.Final(errors.New("the cluster is being deleted, and cannot be brought back: resume the run, which deletes the rest"))
}

// remove deletes the Cluster of that UID and waits until it and its Machines are gone.
func remove(c *sequence.Context, manager access.ClusterRef, spec provider.Cluster, uid types.UID) error {
	on, err := c.Open(manager)
	if err != nil {
		return err
	}
	name := spec.Namespace + "/" + spec.Name
	return poll(c, "cluster "+name+" to be gone", func(ctx context.Context) ([]string, error) {
		s, err := look(ctx, on, spec.Namespace, spec.Name)
		switch {
		case err != nil:
			return nil, err
		case s.Object == nil:
			return nil, nil
		case s.Object.GetUID() != uid:
			return nil, nil // another one, which is not this run's business
		case s.Object.GetDeletionTimestamp() != nil:
			return deletionOf(s), nil
		}
		err = on.Kube.Do(ctx, "delete Cluster "+name, func(ctx context.Context) error {
			return on.Client.Delete(ctx, s.Object, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
		})
		if client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		return []string{"its deletion was asked for"}, nil
	})
}

func deletionOf(s settled.State) []string {
	why := []string{fmt.Sprintf("%d machines left", len(machines(s)))}
	if paused, _, _ := object.Condition(s.Object, clusterv1.PausedCondition); paused == object.True {
		why = append(why, "the Cluster is paused, and Cluster API deletes nothing of it until it is resumed")
	}
	if _, _, message := object.Condition(s.Object, clusterv1.ClusterDeletingCondition); message != "" {
		why = append(why, message)
	}
	return why
}

// removeObject deletes one object and waits until it is gone, or another has its name.
func removeObject(c *sequence.Context, on *access.Cluster, spec provider.Cluster, o *unstructured.Unstructured) error {
	what := fmt.Sprintf("%s %s/%s", o.GetKind(), o.GetNamespace(), o.GetName())
	key := client.ObjectKeyFromObject(o)
	var this types.UID
	return poll(c, what+" to be gone", func(ctx context.Context) ([]string, error) {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(o.GroupVersionKind())
		err := on.Kube.Do(ctx, "get "+what, func(ctx context.Context) error { return on.Client.Get(ctx, key, u) })
		switch {
		case apierrors.IsNotFound(err):
			return nil, nil
		case err != nil:
			return nil, err
		case this != "" && u.GetUID() != this:
			return nil, nil
		case u.GetDeletionTimestamp() != nil:
			this = u.GetUID()
			return []string{fmt.Sprintf("finalizers %v hold it", u.GetFinalizers())}, nil
		}
		if err := vacant(ctx, on, spec); err != nil {
			return nil, err
		}
		this = u.GetUID()
		err = on.Kube.Do(ctx, "delete "+what, func(ctx context.Context) error {
			return on.Client.Delete(ctx, u, client.Preconditions{UID: &this}, client.PropagationPolicy(metav1.DeletePropagationBackground))
		})
		return []string{"its deletion was asked for"}, client.IgnoreNotFound(err)
	})
}
