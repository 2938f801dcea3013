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

// What KubeadmControlPlane writes into the condition UpToDate, and core into that of workers (controlplane/kubeadm/pkg,
// filters.go, and reconcileMachineUpToDateCondition in v1.14).
const (
	sayCertificates = "Certificates will expire soon"
	sayOutdated     = " is not up-to-date" // behind the kind of the infrastructure machine
	sayKubelet      = "Node.status.nodeInfo.kubeletVersion"
)

// rollingOut says what the owner rolls out by itself, "" for nothing: a version, a change of its spec, or an update in
// place. A machine that we made outdated does not count.
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
	// A change of version goes first, as in the owner's own condition RollingOut.
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

// outdatedBy says what makes a machine outdated, without what we did.
func outdatedBy(m *clusterv1.Machine, wanted string) []string {
	if m.Spec.Version != "" && wanted != "" && m.Spec.Version != wanted { // known before its owner says so
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
		case strings.HasPrefix(line, sayKubelet): // an image that brings another kubelet: nothing is replaced for it
		case ours && (line == sayCertificates || line == m.Spec.InfrastructureRef.Kind+sayOutdated): // by our trigger
		default:
			reasons = append(reasons, line)
		}
	}
	if lines == 0 {
		return []string{"a change of its spec"}
	}
	return reasons
}
