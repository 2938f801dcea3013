package ownerkind

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/remediator"
)

// TestEveryKindIsWhole checks what other packages rely on for every kind.
func TestEveryKindIsWhole(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, k := range All() {
		if !scheme.Recognizes(k.GroupVersionKind()) || k.Resource == "" {
			t.Errorf("kind %+v is not in the scheme, or has no resource", k.GroupVersionKind())
		}
		o := k.New()
		o.SetNamespace("fleet")
		o.SetName("a")
		o.SetLabels(map[string]string{clusterv1.ClusterNameLabel: "a"})
		read, ok := As(o)
		if !ok {
			t.Fatalf("As(%T) = false", o)
		}
		if got := read.Owner(); got.Kind != string(k.Name) || got.Name != "a" {
			t.Errorf("%s: Owner = %+v", k.Name, got)
		}
		if read.SetReplicas(3); read.Replicas() == nil || *read.Replicas() != 3 {
			t.Errorf("%s: Replicas after SetReplicas(3) = %v", k.Name, read.Replicas())
		}
		if read.Strip(); *read.Replicas() != 3 {
			t.Errorf("%s: Strip removed the replicas", k.Name)
		}
		if kinds, _, err := scheme.ObjectKinds(k.NewList()); err != nil || kinds[0].Kind != string(k.Name)+"List" {
			t.Errorf("%s: kinds of the list = %v, %v", k.Name, kinds, err)
		}
	}
	if _, ok := As(&clusterv1.Machine{}); ok {
		t.Error("As(Machine) = true")
	}
}

// TestStrip checks that the cache keeps all fields of an owner that facts depend on.
func TestStrip(t *testing.T) {
	two, three := int32(2), int32(3)
	plane := &controlplanev1.KubeadmControlPlane{Spec: controlplanev1.KubeadmControlPlaneSpec{Replicas: &three, Version: "v1.36.0"}}
	plane.Spec.Rollout.Before.CertificatesExpiryDays = 30
	plane.Spec.Remediation.MaxRetry = &two
	plane.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External.Endpoints = []string{"https://etcd:2379"}
	workers := &clusterv1.MachineDeployment{Spec: clusterv1.MachineDeploymentSpec{ClusterName: "a", Replicas: &two}}
	workers.Spec.Template.Spec.Version, workers.Spec.Rollout.Strategy.Type = "v1.36.0", clusterv1.OnDeleteMachineDeploymentStrategyType
	workers.Spec.Template.Spec.ProviderID = "not needed"
	initialized := true
	plane.Status.Initialization.ControlPlaneInitialized = &initialized
	set := &clusterv1.MachineSet{}
	for _, o := range []interface{ SetV1Beta1Conditions(clusterv1.Conditions) }{plane, set} {
		o.SetV1Beta1Conditions(clusterv1.Conditions{
			{Type: clusterv1.MachinesCreatedV1Beta1Condition, Status: corev1.ConditionFalse, Message: "exceeded quota"},
			{Type: clusterv1.ResizedV1Beta1Condition, Status: corev1.ConditionFalse, Message: "not needed"},
		})
	}
	for _, o := range []client.Object{plane, workers, set} {
		read, _ := As(o)
		facts := func() (f remediator.OwnerFacts) {
			read.Fill(&f, Children{})
			return f
		}
		before := facts()
		if _, deployment := o.(*clusterv1.MachineDeployment); before.Uninitialized || !deployment && before.Refused != "exceeded quota" {
			t.Errorf("%T: facts = %+v", o, before)
		}
		read.Strip()
		if diff := cmp.Diff(before, facts()); diff != "" {
			t.Errorf("Strip of %T removed what Fill reads: keep these fields. -before +after\n%s", o, diff)
		}
	}
	if workers.Spec.Template.Spec.ProviderID != "" {
		t.Errorf("Strip of %T kept spec.template.spec.providerID, which no fact depends on: remove it", workers)
	}
}

// TestRolloutStrategy checks that a MachineDeployment with OnDelete is not reported as rolling out, because outdated
// machines stay.
func TestRolloutStrategy(t *testing.T) {
	outdated := &clusterv1.Machine{Spec: clusterv1.MachineSpec{Version: "v1.30.0"}}
	for strategy, want := range map[clusterv1.MachineDeploymentRolloutStrategyType]remediator.OwnerFacts{
		clusterv1.OnDeleteMachineDeploymentStrategyType:      {Version: "v1.31.0", OnDelete: true},
		clusterv1.RollingUpdateMachineDeploymentStrategyType: {Version: "v1.31.0", RollingOut: rollingOut([]*clusterv1.Machine{outdated}, "v1.31.0")},
	} {
		d := &clusterv1.MachineDeployment{}
		d.Spec.Template.Spec.Version, d.Spec.Rollout.Strategy.Type = "v1.31.0", strategy
		var got remediator.OwnerFacts
		deployment{MachineDeployment: d}.Fill(&got, Children{Machines: []*clusterv1.Machine{outdated}})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", strategy, diff)
		}
	}
}

func TestRollingOut(t *testing.T) {
	type of struct {
		mark, version, message string
		updating               bool
	}
	for name, c := range map[string]struct {
		machines []of
		want     string
	}{
		"up to date":              {machines: []of{{}, {}}},
		"our lever, certificates": {machines: []of{{mark: remediator.DeleteValue, message: "* Certificates will expire soon"}, {}}},
		"our lever, template":     {machines: []of{{mark: remediator.DeleteValue, message: "* DevMachine is not up-to-date"}, {}}},
		"another's lever":         {machines: []of{{mark: "somebody", message: "* Certificates will expire soon"}}, want: "1 of 1 machines are not up to date: Certificates will expire soon"},
		"our victim, and more": {
			machines: []of{{mark: remediator.DeleteValue, message: "* DevMachine is not up-to-date\n* KubeadmConfig is not up-to-date"}, {message: "* KubeadmConfig is not up-to-date"}},
			want:     "2 of 2 machines are not up to date: KubeadmConfig is not up-to-date",
		},
		"a version, before the owner says so": {machines: []of{{version: "v1.35.0"}, {message: "* KubeadmConfig is not up-to-date"}}, want: "2 of 2 machines are not up to date: Version v1.35.0, v1.36.0 required; KubeadmConfig is not up-to-date"},
		"rollout after":                       {machines: []of{{message: "* KubeadmControlPlane spec.rolloutAfter expired"}}, want: "1 of 1 machines are not up to date: KubeadmControlPlane spec.rolloutAfter expired"},
		"in place":                            {machines: []of{{updating: true}}, want: "1 of 1 machines are not up to date: update in place"},
		"an image with another kubelet":       {machines: []of{{message: "* Node.status.nodeInfo.kubeletVersion v1.36.2, v1.36.0 required"}}},
		"no reason":                           {machines: []of{{message: " "}}, want: "1 of 1 machines are not up to date: its spec has changed"},
	} {
		t.Run(name, func(t *testing.T) {
			var machines []*clusterv1.Machine
			for _, o := range c.machines {
				m := &clusterv1.Machine{Spec: clusterv1.MachineSpec{Version: "v1.36.0", InfrastructureRef: clusterv1.ContractVersionedObjectReference{Kind: "DevMachine"}}}
				if o.version != "" {
					m.Spec.Version = o.version
				}
				m.Annotations = map[string]string{clusterv1.DeleteMachineAnnotation: o.mark}
				if o.message != "" {
					m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: clusterv1.MachineUpToDateCondition, Status: metav1.ConditionFalse, Message: o.message})
				}
				if o.updating {
					m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: clusterv1.MachineUpdatingCondition, Status: metav1.ConditionTrue})
				}
				machines = append(machines, m)
			}
			if got := rollingOut(machines, "v1.36.0"); got != c.want {
				t.Errorf("rollingOut = %q, want %q", got, c.want)
			}
		})
	}
}

func TestOf(t *testing.T) {
	for _, c := range []struct{ apiVersion, kind, want string }{
		{"controlplane.cluster.x-k8s.io/v1beta2", "KubeadmControlPlane", "KubeadmControlPlane"},
		{"controlplane.cluster.x-k8s.io/v1beta1", "KubeadmControlPlane", "KubeadmControlPlane"},
		{"cluster.x-k8s.io/v1beta2", "MachineSet", "MachineSet"},
		{"machine.example.com/v1", "MachineSet", "MachineSet.machine.example.com"},
		{"controlplane.cluster.x-k8s.io/v1beta1", "RKE2ControlPlane", "RKE2ControlPlane"},
	} {
		if got := Of(&metav1.OwnerReference{APIVersion: c.apiVersion, Kind: c.kind}); got != c.want {
			t.Errorf("Of(%s %s) = %s", c.apiVersion, c.kind, got)
		}
	}
}

func TestOwnerOfSet(t *testing.T) {
	yes := true
	s := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s", UID: "1"}, Spec: clusterv1.MachineSetSpec{ClusterName: "c"}}
	want := remediator.Owner{Kind: "MachineSet", Namespace: "n", Name: "s", UID: "1", Cluster: "c"}
	if got := (set{MachineSet: s}).Owner(); got != want {
		t.Errorf("Owner = %+v", got)
	}
	s.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "MachineDeployment", Name: "d", UID: "2", Controller: &yes}}
	want = remediator.Owner{Kind: "MachineDeployment", Namespace: "n", Name: "d", UID: "2", Cluster: "c"}
	if got := (set{MachineSet: s}).Owner(); got != want {
		t.Errorf("Owner = %+v", got)
	}
}

// TestSetsByAge checks that the current MachineSet of a MachineDeployment is sorted last, even if it is older than
// another one, as after a rollback.
func TestSetsByAge(t *testing.T) {
	now := time.Now()
	of := func(name, revision string, age time.Duration) clusterv1.MachineSet {
		return clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{
			Name: name, CreationTimestamp: metav1.NewTime(now.Add(-age)), Annotations: map[string]string{clusterv1.RevisionAnnotation: revision},
		}}
	}
	got := setsByAge([]clusterv1.MachineSet{of("new", "2", time.Hour), of("back", "3", 3*time.Hour), of("old", "1", 2*time.Hour)}, "3")
	if diff := cmp.Diff([]string{"old", "new", "back"}, got); diff != "" {
		t.Error(diff)
	}
}
