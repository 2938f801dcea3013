package settled

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/kube/object"
)

func name(u *unstructured.Unstructured) string { return object.Observe(u).Ref.String() }

func number(u *unstructured.Unstructured, path ...string) *int64 {
	value, found, err := unstructured.NestedInt64(u.Object, path...)
	if !found || err != nil {
		return nil
	}
	return &value
}

func desiredVersion(u *unstructured.Unstructured) string {
	if u.GroupVersionKind().Group == clusterv1.GroupVersion.Group && u.GetKind() != machineKind {
		return object.Text(u, "spec", "template", "spec", "version")
	}
	return object.Text(u, "spec", "version")
}

// compareReplicas returns a problem for each count in the status, and for the number of machines,
// that differs from spec.replicas. It returns none for a control plane without spec.replicas.
func compareReplicas(u *unstructured.Unstructured, machines int) []string {
	desired := number(u, "spec", "replicas")
	if desired == nil {
		return nil
	}
	fields := []string{"replicas", "readyReplicas", "availableReplicas", "upToDateReplicas"}
	if u.GetKind() == poolKind || u.GetKind() == setKind && controller(u, deploymentKind) == "" {
		fields = fields[:3] // the status does not report which machines are up to date
	}
	settled := machines == 0 && u.GetKind() != deploymentKind && u.GetKind() != setKind || int64(machines) == *desired
	said := make([]string, 0, len(fields))
	for _, field := range fields {
		have := replicas(u, field)
		settled = settled && have != nil && *have == *desired
		if have == nil {
			said = append(said, field+" not reported")
		} else {
			said = append(said, fmt.Sprintf("%s %d", field, *have))
		}
	}
	if settled {
		return nil
	}
	return []string{fmt.Sprintf("%s: %d replicas desired; %s; %d Machines", name(u), *desired, strings.Join(said, ", "), machines)}
}

// replicas returns a count of the status, or nil. The contract v1beta1 has no upToDateReplicas, and
// for a control plane no availableReplicas: they are computed as internal/contract of Cluster API
// v1.14 does, where a missing unavailableReplicas is 0.
func replicas(u *unstructured.Unstructured, field string) *int64 {
	if have := number(u, "status", field); have != nil {
		return have
	}
	updated, unavailable := number(u, "status", "updatedReplicas"), number(u, "status", "unavailableReplicas")
	if number(u, "status", "upToDateReplicas") != nil || updated == nil && unavailable == nil {
		return nil
	}
	switch desired := number(u, "spec", "replicas"); {
	case field == "upToDateReplicas":
		return updated
	case field == "availableReplicas" && desired != nil:
		return new(*desired - ptr.Deref(unavailable, 0))
	default:
		return nil
	}
}

func outdatedVersions(u *unstructured.Unstructured, want string, machines []*unstructured.Unstructured) []string {
	if want == "" {
		return nil
	}
	var why []string
	for _, m := range machines {
		if have := desiredVersion(m); have != want {
			why = append(why, fmt.Sprintf("%s has version %s, not %s", name(m), have, want))
		}
	}
	reported := versions(u)
	for _, have := range reported {
		if isOlder(have, want) {
			why = append(why, fmt.Sprintf("%s: its status reports version %s, but its spec has version %s", name(u), have, want))
		}
	}
	if len(reported) == 0 && len(machines) == 0 && u.GroupVersionKind().Group != clusterv1.GroupVersion.Group {
		why = append(why, name(u)+": its status reports no version yet")
	}
	return why
}

// versions returns the versions in a status. Since Cluster API v1.14 the status contains a list;
// before, it contains only the lowest version.
func versions(u *unstructured.Unstructured) []string {
	var list []string
	entries, _, _ := unstructured.NestedSlice(u.Object, "status", "versions")
	for _, entry := range entries {
		if entry, ok := entry.(map[string]any); ok {
			if v, _, _ := unstructured.NestedString(entry, "version"); v != "" {
				list = append(list, v)
			}
		}
	}
	if v := object.Text(u, "status", "version"); v != "" && len(list) == 0 {
		list = append(list, v)
	}
	return list
}

// isOlder reports whether the version have is older than want. It compares like Cluster API,
// because a provider may report a suffix, such as v1.36.1-eks-1.
func isOlder(have, want string) bool {
	h, err := version.ParseGeneric(have)
	if err != nil {
		return have != want
	}
	w, err := version.ParseGeneric(want)
	return err != nil && have != want || err == nil && h.LessThan(w)
}

// sameTemplate reports whether two machine templates are equal in the fields whose change triggers
// a rollout of a MachineDeployment. Other fields are changed in place
// (mdutil.MachineTemplateUpToDate in Cluster API v1.14).
func sameTemplate(a, b *unstructured.Unstructured) bool {
	for _, field := range []string{"version", "bootstrap", "infrastructureRef", "failureDomain"} {
		x, _, _ := unstructured.NestedFieldNoCopy(a.Object, "spec", "template", "spec", field)
		y, _, _ := unstructured.NestedFieldNoCopy(b.Object, "spec", "template", "spec", field)
		if !equality.Semantic.DeepEqual(x, y) {
			return false
		}
	}
	return true
}

func controller(u *unstructured.Unstructured, kind string) types.UID {
	if ref := metav1.GetControllerOfNoCopy(u); ref != nil && ref.Kind == kind {
		return ref.UID
	}
	return ""
}

// unique returns the lines without duplicates. A machine that is being deleted is reported twice,
// for its owner and for its cluster.
func unique(lines []string) []string {
	var list []string
	for _, line := range lines {
		if !slices.Contains(list, line) {
			list = append(list, line)
		}
	}
	return list
}
