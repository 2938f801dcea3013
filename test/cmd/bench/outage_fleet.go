package main

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/test/testbed"
)

// failing is the failure domain that fails, one of three.
const failing = "a"

func outageNamespace(i int) string { return fmt.Sprintf("fleet-%02d", i%outageNamespaces) }

func outageCluster(i int) string { return fmt.Sprintf("cluster-%04d", i) }

// outageZone returns the failure domain of a cluster's workers. Its control plane has a machine in each failure domain.
func outageZone(i int) string { return []string{failing, "b", "c"}[i%3] }

// fallsAlone reports whether one worker of a cluster outside the failing domain fails.
func (o *outage) fallsAlone(i int) bool {
	return outageZone(i) != failing && i < min(30, o.clusters/10)
}

// model creates a cluster with the real controllers, and captures its objects when it is healthy and when its machines
// have no power. Then it stops the controllers. The workload cluster continues to run: the kubeconfigs of the copies
// lead to it.
func (o *outage) model(ctx context.Context) error {
	spec := testbed.Cluster{Namespace: "specimen", Name: "specimen", ControlPlanes: replicas, Workers: outageWorkers, CertificateExpiryDays: 30, FailureDomains: []string{failing, "b", "c"}}
	workload, err := o.side.CreateCluster(ctx, spec)
	if err != nil {
		return err
	}
	if err := o.side.WaitAvailable(ctx, spec.Namespace, spec.Name); err != nil {
		return err
	}
	if o.healthy, err = o.capture(ctx); err != nil {
		return err
	}
	machines := &clusterv1.MachineList{}
	if err := o.admin.List(ctx, machines, client.InNamespace(spec.Namespace)); err != nil {
		return err
	}
	for i := range machines.Items {
		m := &machines.Items[i]
		switch _, plane := m.Labels[clusterv1.MachineControlPlaneLabel]; {
		case !plane:
			err = workload.StopKubelet(ctx, m.Status.NodeRef.Name)
		case m.Spec.FailureDomain == failing:
			err = workload.PowerOff(ctx, m.Status.NodeRef.Name)
		}
		if err != nil {
			return err
		}
	}
	if err := o.silent(ctx, spec.Namespace); err != nil {
		return err
	}
	after, err := o.capture(ctx)
	if err != nil {
		return err
	}
	o.failed = make(map[string]map[string]any)
	for _, object := range after.objects {
		o.failed[object.GetName()], _, _ = unstructured.NestedMap(object.Object, "status")
	}
	return o.endControllers(ctx)
}

func (o *outage) capture(ctx context.Context) (*specimen, error) {
	cluster, plane := clusterv1.GroupVersion, controlplanev1.GroupVersion
	s, err := capture(ctx, o.admin, "specimen", cluster.WithKind("Cluster"), plane.WithKind("KubeadmControlPlane"),
		cluster.WithKind("MachineDeployment"), cluster.WithKind("MachineSet"), cluster.WithKind("Machine"))
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"specimen-kubeconfig", "specimen-etcd"} {
		secret := &unstructured.Unstructured{}
		secret.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Secret"})
		if err := o.admin.Get(ctx, client.ObjectKey{Namespace: "specimen", Name: name}, secret); err != nil {
			return nil, fmt.Errorf("reading a Secret of the cluster: %w", err)
		}
		s.objects = append(s.objects, secret)
	}
	return s, nil
}

// silent waits until the controllers have noticed that the machines have no power.
func (o *outage) silent(ctx context.Context, namespace string) error {
	return until(ctx, "the controllers have seen the failure", func(ctx context.Context) (string, error) {
		machines := &clusterv1.MachineList{}
		if err := o.admin.List(ctx, machines, client.InNamespace(namespace)); err != nil {
			return "", err
		}
		ready, etcd := 0, 0
		for i := range machines.Items {
			for _, c := range machines.Items[i].Status.Conditions {
				switch {
				case c.Type == clusterv1.MachineNodeReadyCondition && c.Status == metav1.ConditionTrue:
					ready++
				case c.Type == controlplanev1.KubeadmControlPlaneMachineEtcdPodHealthyCondition && c.Status == metav1.ConditionTrue:
					etcd++
				}
			}
		}
		if ready == replicas-1 && etcd == replicas-1 {
			return "", nil
		}
		return fmt.Sprintf("%d nodes are ready, %d pods of etcd are healthy", ready, etcd), nil
	})
}

// endControllers stops all controllers and webhooks, so that only scuted is measured.
func (o *outage) endControllers(ctx context.Context) error {
	if err := o.side.StopControllers(); err != nil {
		return err
	}
	c := o.side.Client()
	for _, webhooks := range []client.Object{&admissionv1.ValidatingWebhookConfiguration{}, &admissionv1.MutatingWebhookConfiguration{}} {
		if err := c.DeleteAllOf(ctx, webhooks); err != nil {
			return fmt.Errorf("removing the webhooks of the controllers: %w", err)
		}
	}
	return nil
}

// copies creates the fleet. Each cluster's machines are on the nodes of the single workload cluster.
func (o *outage) copies(ctx context.Context) error {
	for i := range outageNamespaces {
		if err := o.admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: outageNamespace(i)}}); err != nil {
			return fmt.Errorf("making the fleet: %w", err)
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i := range o.clusters {
		group.Go(func() error {
			return o.healthy.copy(ctx, o.admin, outageNamespace(i), outageCluster(i), func(original, copied *unstructured.Unstructured) {
				if node, found, _ := unstructured.NestedMap(original.Object, "status", "nodeRef"); found {
					_ = unstructured.SetNestedMap(copied.Object, node, "status", "nodeRef")
				}
				if isWorker(original) {
					_ = unstructured.SetNestedField(copied.Object, outageZone(i), "spec", "failureDomain")
				}
			})
		})
	}
	return group.Wait()
}

func isWorker(o *unstructured.Unstructured) bool {
	_, plane := o.GetLabels()[clusterv1.MachineControlPlaneLabel]
	return o.GetKind() == "Machine" && !plane
}

// fail turns off the failure domain: it writes the statuses that the real controllers have written.
func (o *outage) fail(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i := range o.clusters {
		group.Go(func() error {
			alone := o.fallsAlone(i)
			for _, object := range o.healthy.objects {
				worker := isWorker(object)
				if worker && outageZone(i) != failing && !alone {
					continue
				}
				if err := o.change(ctx, object, i); err != nil {
					return err
				}
				alone = alone && !worker
			}
			return nil
		})
	}
	return group.Wait()
}

// change writes the status of an object of a cluster after the failure.
func (o *outage) change(ctx context.Context, original *unstructured.Unstructured, i int) error {
	status := runtime.DeepCopyJSON(o.failed[original.GetName()])
	before, _, _ := unstructured.NestedMap(original.Object, "status")
	if reflect.DeepEqual(before, status) {
		return nil
	}
	now := stamped(before, status)
	delete(now, "nodeRef") // unchanged
	copied, err := renamed(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": original.GetAPIVersion(), "kind": original.GetKind(), "metadata": map[string]any{"name": original.GetName()}, "status": now,
	}}, o.healthy.name, outageCluster(i))
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"status": copied.Object["status"]})
	if err != nil {
		return err
	}
	copied.SetNamespace(outageNamespace(i))
	if err := o.admin.Status().Patch(ctx, copied, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("writing the failure of %s %s: %w", original.GetKind(), original.GetName(), err)
	}
	return nil
}

// stamped sets the transition times of the conditions that the failure has changed to now.
func stamped(before, after map[string]any) map[string]any {
	status := func(object map[string]any) map[any]any {
		all := make(map[any]any)
		conditions, _, _ := unstructured.NestedSlice(object, "conditions")
		for _, c := range conditions {
			if one, ok := c.(map[string]any); ok {
				all[one["type"]] = one["status"]
			}
		}
		return all
	}
	then := status(before)
	conditions, _, _ := unstructured.NestedSlice(after, "conditions")
	for _, c := range conditions {
		if one, ok := c.(map[string]any); ok && then[one["type"]] != one["status"] {
			one["lastTransitionTime"] = time.Now().UTC().Format(time.RFC3339)
		}
	}
	after["conditions"] = conditions
	return after
}
