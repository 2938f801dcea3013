package object

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
)

// isUpdating reports whether Cluster API updates machines in place, by the annotations of a Machine
// or a MachineSet.
func isUpdating(list map[string]string) bool {
	domain, _, _ := strings.Cut(clusterv1.UpdateInProgressAnnotation, "/")
	return annotations.HasWithPrefix(domain+"/", list) ||
		slices.Contains(strings.Split(list[runtimev1.PendingHooksAnnotation], ","), "UpdateMachine")
}

// pendingVersions returns the remaining versions of an upgrade of Kubernetes, or "". In the last
// step the plan is empty, and only the annotation shows the upgrade.
func pendingVersions(u *unstructured.Unstructured) string {
	var versions []string
	for _, part := range []string{"controlPlane", "workers"} {
		plan, _, _ := unstructured.NestedSlice(u.Object, "status", part, "upgradePlan")
		for _, step := range plan {
			step, _ := step.(map[string]any)
			if version, _ := step["version"].(string); version != "" && !slices.Contains(versions, version) {
				versions = append(versions, version)
			}
		}
	}
	if step := u.GetAnnotations()[clusterv1.ClusterTopologyUpgradeStepAnnotation]; len(versions) == 0 {
		return step
	}
	return strings.Join(versions, ", ")
}

func replicas(u *unstructured.Unstructured) int64 {
	wanted, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
	have, _, _ := unstructured.NestedInt64(u.Object, "status", "replicas")
	return max(wanted, have)
}

// extensions returns the runtime extension handlers of a ClusterClass of either version, as
// HANDLER.EXTENSIONCONFIG: for patches, variables and upgrade plans.
func extensions(u *unstructured.Unstructured) (handlers []string) {
	list, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "patches")
	patches, _ := list.([]any)
	upgrade, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "upgrade")
	for _, part := range append(slices.Clone(patches), upgrade) {
		part, _ := part.(map[string]any)
		external, _ := part["external"].(map[string]any)
		for field, handler := range external {
			if name, _ := handler.(string); name != "" && strings.HasSuffix(field, "Extension") && !slices.Contains(handlers, name) {
				handlers = append(handlers, name)
			}
		}
	}
	slices.Sort(handlers)
	return handlers
}
