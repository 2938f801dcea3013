package provider

import (
	"context"
	"encoding/json"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// annotate sets and removes annotations if they differ.
func annotate(ctx context.Context, c client.Client, o *unstructured.Unstructured, want map[string]bool) error {
	change := make(map[string]any)
	for key, is := range want {
		switch _, has := o.GetAnnotations()[key]; {
		case is && !has:
			change[key] = "true"
		case !is && has:
			change[key] = nil
		}
	}
	if len(change) == 0 {
		return nil
	}
	return patch(ctx, c, o, map[string]any{"metadata": map[string]any{"annotations": change}})
}

// report writes fields of the status if they differ.
func report(ctx context.Context, c client.Client, o *unstructured.Unstructured, fields map[string]any) error {
	now, _, _ := unstructured.NestedMap(o.Object, "status")
	same := true
	for key, value := range fields {
		same = same && reflect.DeepEqual(now[key], value)
	}
	if same {
		return nil
	}
	return patch(ctx, c, o, map[string]any{"status": fields}, "status")
}

// patch patches an object. It returns nil if the object no longer exists.
func patch(ctx context.Context, c client.Client, o *unstructured.Unstructured, body map[string]any, subresources ...string) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	change, was := client.RawPatch("application/merge-patch+json", raw), o.DeepCopy()
	if len(subresources) > 0 {
		return client.IgnoreNotFound(c.Status().Patch(ctx, was, change))
	}
	return client.IgnoreNotFound(c.Patch(ctx, was, change))
}

// paused returns the conditions of an object.
func paused(status string) []any {
	return []any{map[string]any{
		"type": clusterv1.PausedCondition, "status": status, "reason": "Asked", "message": "", "lastTransitionTime": metav1.Unix(0, 0).UTC().Format("2006-01-02T15:04:05Z"),
	}}
}

// mute is a controller that ignores pauses: its objects always report that they are not paused.
type mute struct{ client.Client }

// Reconcile implements reconcile.Reconciler.
func (r *mute) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	o := empty(MuteKind)
	if err := r.Get(ctx, req.NamespacedName, o); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	return reconcile.Result{}, report(ctx, r, o, map[string]any{"conditions": paused("False")})
}
