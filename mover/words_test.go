package mover_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"scute.dev/kube/object"
)

// groupOf returns the group of a kind in the scripts. A kind that is not listed belongs to an infrastructure provider.
func groupOf(kind string) string {
	switch kind {
	case "Secret", "ConfigMap":
		return ""
	case "Cluster", "ClusterClass", "Machine", "MachineSet", "MachineDeployment", "MachinePool", "MachineHealthCheck":
		return object.CoreGroup
	case "StatefulSet", "Deployment":
		return "apps"
	case "Pod", "Service":
		return ""
	case "KubeadmControlPlane", "K0smotronControlPlane", "KamajiControlPlane", "OtherControlPlane", "CloudControlPlane":
		return "controlplane.cluster.x-k8s.io"
	case "KubeadmConfig", "KubeadmConfigTemplate":
		return "bootstrap.cluster.x-k8s.io"
	case "BareMetalHost":
		return "metal3.io"
	case "UserAssignedIdentity":
		return "managedidentity.azure.com"
	case "SurgeRemediationTemplate":
		return object.OwnGroup
	case "ClusterResourceSet", "ClusterResourceSetBinding", "HelmReleaseProxy":
		return object.AddonsGroup
	default:
		return "infrastructure.cluster.x-k8s.io"
	}
}

// ref parses "Kind/name" (in namespace fleet), "Kind/namespace/name", or "Kind//name" for a cluster-scoped object.
func ref(t testing.TB, word string) object.Ref {
	t.Helper()
	parts := strings.Split(word, "/")
	switch len(parts) {
	case 2:
		return object.Ref{Group: groupOf(parts[0]), Kind: parts[0], Namespace: "fleet", Name: parts[1]}
	case 3:
		return object.Ref{Group: groupOf(parts[0]), Kind: parts[0], Namespace: parts[1], Name: parts[2]}
	default:
		t.Fatalf("%q is not Kind/name, Kind/namespace/name or Kind//name", word)
		return object.Ref{}
	}
}

// refText is the inverse of ref.
func refText(r object.Ref) string {
	if r.Namespace == "fleet" {
		return r.Kind + "/" + r.Name
	}
	return r.Kind + "/" + r.Namespace + "/" + r.Name
}

func refTexts(refs []object.Ref) string {
	refs = slices.SortedFunc(slices.Values(refs), object.Compare)
	out := make([]string, len(refs))
	for i, r := range refs {
		out[i] = refText(r)
	}
	return strings.Join(out, " ")
}

// lines splits a command's input into lines of words.
func lines(d *datadriven.TestData) [][]string {
	var out [][]string
	for line := range strings.Lines(d.Input) {
		if f := strings.Fields(line); len(f) > 0 && !strings.HasPrefix(f[0], "#") {
			out = append(out, f)
		}
	}
	return out
}

// option returns the value of "key=value" in a line, and whether the key is there.
func option(fields []string, key string) (string, bool) {
	for _, f := range fields {
		if f == key {
			return "", true
		}
		if v, ok := strings.CutPrefix(f, key+"="); ok {
			return v, true
		}
	}
	return "", false
}

func bullet(b *strings.Builder, format string, args ...any) {
	fmt.Fprintf(b, format+"\n", args...)
}
