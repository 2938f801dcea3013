package provider

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/kube"
	"scute.dev/kube/settled"
	"scute.dev/view"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// Decision is the output of the task pre-upgrade. It describes what the upgrade changes, and
// applies to the whole run.
type Decision struct {
	Needed bool `json:"needed"`
	// UpgradeCluster is set if the cluster itself changes. Otherwise its move and upgrade are skipped.
	UpgradeCluster bool `json:"upgradeCluster"`
	// Reason is why the cluster changes.
	Reason     string      `json:"reason,omitempty"`
	Objects    string      `json:"objects,omitempty"`
	Components []Component `json:"components,omitempty"`
}

const notNeededReason = "pre-upgrade found nothing to upgrade: the cluster has the version, and its objects match the template"

// Decide compares the cluster with its specification. It fails if the cluster does not exist or
// cannot be upgraded to this version.
func (t Target) Decide(p Upgrader) (d Decision, err error) {
	objects, s, err := t.upgradeObjects(p)
	if err != nil {
		return d, err
	}
	if old := oldVersion(s, t.Version); old != "" {
		d.Components = append(d.Components, Component{Name: "Kubernetes", OldVersion: old, NewVersion: t.Version})
	}
	why, err := ChangedObjects(t.Context, t.Manager, t.Namespace, objects)
	if err != nil {
		return d, err
	}
	why = append(why, outdatedReasons(s, t.Version)...)
	d.UpgradeCluster, d.Reason = len(why) > 0, view.First(why)
	d.Needed = d.UpgradeCluster
	d.Objects, err = checksum(objects)
	return d, err
}

func checksum(objects []*unstructured.Unstructured) (string, error) {
	data, err := json.Marshal(objects)
	return fmt.Sprintf("%x", sha256.Sum256(data)), err
}

// WaitUnchanged waits until a cluster that is not upgraded is settled, because upgraded components
// may have replaced its machines. It fails if the template or the version has changed since
// pre-upgrade.
func (t Target) WaitUnchanged(p Upgrader) error {
	objects, _, err := t.upgradeObjects(p)
	if err != nil {
		return err
	}
	now, err := checksum(objects)
	if err != nil {
		return err
	}
	if was := decisionOf(t.Call()).Objects; was != "" && was != now {
		why, err := ChangedObjects(t.Context, t.Manager, t.Namespace, objects)
		if err != nil {
			return err
		}
		if len(why) > 0 {
			return task.Final(fmt.Errorf("the template or the parameters have changed since pre-upgrade found nothing to upgrade: %s: restore them, or "+
				"abort this run and start another one", view.First(why)))
		}
	}
	return t.waitUpToDate()
}

// Compare adds to the decision the components that the provider will change on the cluster.
func (d *Decision) Compare(c *Context, p any, on access.ClusterRef) error {
	comparer, ok := p.(Comparer)
	if !ok {
		return nil
	}
	more, err := comparer.Differences(c, on)
	d.Components = append(d.Components, more...)
	d.Needed = d.Needed || len(more) > 0
	if n := len(d.Components) - access.MaxNamedObjects; n > 0 {
		d.Components = append(d.Components[:access.MaxNamedObjects], Component{Name: fmt.Sprintf("and %d more", n)})
	}
	return err
}

// oldVersion returns the version of a machine or of the topology that differs from the new version,
// or "" if there is none.
func oldVersion(s settled.State, version string) string {
	for _, m := range machines(s) {
		if have, _, _ := unstructured.NestedString(m.Object, "spec", "version"); have != "" && have != version {
			return have
		}
	}
	if have, _, _ := unstructured.NestedString(s.Object.Object, "spec", "topology", "version"); have != version {
		return have
	}
	return ""
}

// ChangedObjects returns the objects that an apply would create or change, found with dry runs.
func ChangedObjects(c *Context, ref access.ClusterRef, namespace string, objects []*unstructured.Unstructured) (names []string, err error) {
	on, err := c.Open(ref)
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		ref, _, err := on.Qualify(c, access.RefOf(o), namespace)
		if err != nil {
			return nil, err
		}
		live, err := on.Find(c, ref)
		if err != nil {
			return nil, err
		}
		if live == nil {
			names = append(names, ref.String()+" is new")
			continue
		}
		want := o.DeepCopy()
		want.SetNamespace(ref.Namespace)
		want.SetUID(live.GetUID())
		if mark := access.StepKeyOf(live); mark != "" { // keep the annotation, as kind Apply does
			annotations.AddAnnotations(want, map[string]string{access.StepKeyAnnotation: mark})
		}
		err = on.Kube.Do(c, "compare "+ref.String(), func(ctx context.Context) error {
			return on.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(want), client.FieldOwner(kube.FieldManager), client.ForceOwnership, client.DryRunAll)
		})
		switch err := access.FinalIfObjectRefused(ref, err); {
		case task.IsFinal(err): // its CRD may come with the new components
			names = append(names, ref.String()+" cannot be compared")
		case err != nil:
			return nil, err
		case !reflect.DeepEqual(access.ContentOf(live), access.ContentOf(want)):
			names = append(names, ref.String()+" changes")
		}
	}
	return names, nil
}

// decisionOf returns the decision that pre-upgrade recorded. Without one it returns an upgrade:
// pre-upgrade may have failed and been ignored, or an earlier version of scute may have run it.
func decisionOf(call *task.Call) Decision {
	d := Decision{Needed: true, UpgradeCluster: true}
	_ = json.Unmarshal(call.Inputs["pre-upgrade"], &d)
	return d
}

// IfNeeded returns the step with skip as its replacement if the cluster does not change.
func IfNeeded[A, B, O any](s Step[A, B, O], skip func(c *A, reason string) (O, error)) Step[A, B, O] {
	s.Skip = skip
	return s
}

// Skip does nothing and records the reason.
func Skip[A any](_ *A, reason string) (None, error) { return None{Skipped: reason}, nil }
