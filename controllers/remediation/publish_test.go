package remediation

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"

	"scute.dev/api/v1alpha1"
)

// etcdView reports each etcd as fragmented, and also an alarm for the last control plane.
type etcdView struct {
	records
	last string
}

func (v etcdView) Etcd(owner string) []v1alpha1.EtcdProblem {
	list := []v1alpha1.EtcdProblem{{ControlPlane: owner, Problem: v1alpha1.EtcdFragmented}}
	if owner == v.last {
		list = append(list, v1alpha1.EtcdProblem{ControlPlane: owner, Problem: v1alpha1.EtcdNoSpace})
	}
	return list
}

// TestEtcdProblemsAreBounded checks that a policy shows as many problems as its schema allows, alarms first.
func TestEtcdProblemsAreBounded(t *testing.T) {
	s := &scope{}
	for i := range 30 {
		kcp := &controlplanev1.KubeadmControlPlane{}
		kcp.Namespace, kcp.Name, kcp.UID = "fleet", fmt.Sprint("cp-", i), types.UID(fmt.Sprintf("%08d-1", i))
		s.planes = append(s.planes, plane{owner: ownerOf(kcp)})
	}
	r := &policyReconciler{view: etcdView{last: "fleet/cp-29/00000029"}}
	list := r.etcd(s)
	if len(list) != v1alpha1.MostEtcdProblems || list[0].Problem != v1alpha1.EtcdNoSpace || list[1].ControlPlane != "fleet/cp-0/00000000" {
		t.Errorf("got %d problems: %+v", len(list), list)
	}
	if list := r.etcd(&scope{}); len(list) != 0 {
		t.Errorf("without a control plane: got %+v", list)
	}
}
