package api

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/harness"
	"scute.dev/test/scuted"
)

// TestNamespaceDeleted checks that the deletion of a namespace with an object of each kind and a started run completes.
func TestNamespaceDeleted(t *testing.T) {
	ctx := harness.Deadline(t, 5*time.Minute)
	crds := definitions(t)
	serve(ctx, t, crds...)
	in := install(ctx, t)
	dir, err := in.NewLogDir()
	harness.Must(t, err)
	stop := daemon(ctx, t, in, dir)
	defer stop()
	const name = "going"
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	harness.Must(t, admin().Create(ctx, namespace))
	for _, crd := range crds {
		if single(crd.Spec.Names.Kind) {
			continue
		}
		o := valued(t, crd, 0)
		call(o, name, "one")
		harness.Must(t, admin().Create(ctx, o))
	}
	w, err := scuted.NewWorkflowRun(name, "begun", "", "tasks: [{name: a, kind: Approve, with: {message: 'go on?'}}]")
	harness.Must(t, err)
	c, err := in.Client()
	harness.Must(t, err)
	harness.Must(t, c.Create(ctx, w))
	_, err = in.WaitWorkflowRun(ctx, name, "begun", func(w *v1alpha1.WorkflowRun) bool { return w.Status.Phase == v1alpha1.RunPaused })
	harness.Must(t, err)

	harness.Must(t, admin().Delete(ctx, namespace))
	harness.Await(ctx, t, "the namespace is gone", func() string {
		switch err := admin().Get(ctx, client.ObjectKeyFromObject(namespace), namespace); {
		case apierrors.IsNotFound(err):
			return ""
		case err != nil:
			return err.Error()
		}
		why := ""
		for _, c := range namespace.Status.Conditions {
			if c.Status == corev1.ConditionTrue {
				why += c.Message + "; "
			}
		}
		return why + string(namespace.Status.Phase)
	})
}
