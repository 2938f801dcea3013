package ownerkind

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/remediator"
)

// Messages of the condition UpToDate, from KubeadmControlPlane and for workers from core
// (controlplane/kubeadm/pkg, filters.go, and reconcileMachineUpToDateCondition in v1.14).
const (
	certificatesMessage = "Certificates will expire soon"
	outdatedMessage     = " is not up-to-date" // after the kind of the infrastructure machine
	kubeletMessage      = "Node.status.nodeInfo.kubeletVersion"
)

// rollingOut returns what the owner itself rolls out, "" for nothing: a version, a change of its
// spec, or an update in place. It ignores machines that scute made outdated.
func rollingOut(machines []*clusterv1.Machine, wanted string) string {
	var reasons []string
	outdated := 0
	for _, m := range machines {
		why := outdatedBy(m, wanted)
		if len(why) == 0 {
			continue
		}
		outdated++
		for _, reason := range why {
			if !slices.Contains(reasons, reason) {
				reasons = append(reasons, reason)
			}
		}
	}
	if outdated == 0 {
		return ""
	}
	// A change of version is first, as in the owner's own condition RollingOut.
	slices.SortFunc(reasons, func(a, b string) int {
		if x, y := strings.HasPrefix(a, "Version"), strings.HasPrefix(b, "Version"); x != y {
			if x {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	return fmt.Sprintf("%d of %d machines are not up to date: %s", outdated, len(machines), strings.Join(reasons, "; "))
}

// outdatedBy returns why a machine is outdated, except for triggers of scute.
func outdatedBy(m *clusterv1.Machine, wanted string) []string {
	if m.Spec.Version != "" && wanted != "" && m.Spec.Version != wanted { // known before its owner reports it
		return []string{fmt.Sprintf("Version %s, %s required", m.Spec.Version, wanted)}
	}
	if updating := meta.FindStatusCondition(m.Status.Conditions, clusterv1.MachineUpdatingCondition); updating != nil && updating.Status == metav1.ConditionTrue {
		return []string{"update in place"}
	}
	c := meta.FindStatusCondition(m.Status.Conditions, clusterv1.MachineUpToDateCondition)
	if c == nil || c.Status != metav1.ConditionFalse {
		return nil
	}
	ours := m.Annotations[clusterv1.DeleteMachineAnnotation] == remediator.DeleteValue
	reasons := []string{}
	lines := 0
	for line := range strings.SplitSeq(c.Message, "\n") {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "* "))
		if line == "" {
			continue
		}
		lines++
		switch {
		case strings.HasPrefix(line, kubeletMessage): // an image with another kubelet, which replaces nothing
		case ours && (line == certificatesMessage || line == m.Spec.InfrastructureRef.Kind+outdatedMessage): // by scute's trigger
		default:
			reasons = append(reasons, line)
		}
	}
	if lines == 0 {
		return []string{"its spec has changed"}
	}
	return reasons
}
