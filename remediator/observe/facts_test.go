package observe

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/object"
	"scute.dev/remediator"
	"scute.dev/remediator/ownerkind"
)

func TestHooks(t *testing.T) {
	got := hooks(map[string]string{
		clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/volumes": "x", clusterv1.PreDrainDeleteHookAnnotationPrefix + "/backup": "",
		controlplanev1.PreTerminateHookCleanupAnnotation: "", clusterv1.PreDrainDeleteHookAnnotationPrefix: "", "a": "b",
	})
	if diff := cmp.Diff([]string{"pre-drain/", "pre-drain/backup", "pre-terminate/volumes"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestStripMachine checks that the cache keeps all fields of a Machine that facts depend on.
func TestStripMachine(t *testing.T) {
	m := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Name: "m", ManagedFields: []metav1.ManagedFieldsEntry{{}}, Finalizers: []string{"f"},
			Annotations: map[string]string{
				clusterv1.PausedAnnotation: "", v1alpha1.UnhealthyAnnotation: "{}", clusterv1.DeleteMachineAnnotation: "",
				clusterv1.PreDrainDeleteHookAnnotationPrefix + "/x": "", "kubectl.kubernetes.io/last-applied-configuration": "long",
				"cluster.x-k8s.io/conversion-data": strings.Repeat("long", 100),
			},
		},
		Spec: clusterv1.MachineSpec{ClusterName: "c", ProviderID: "p", Version: "v1"},
		Status: clusterv1.MachineStatus{
			NodeRef: clusterv1.MachineNodeReference{Name: "n"},
			Conditions: []metav1.Condition{
				{Type: clusterv1.MachineReadyCondition, Status: metav1.ConditionFalse, Reason: "R", Message: "long"},
				{Type: clusterv1.MachineUpToDateCondition, Status: metav1.ConditionFalse, Message: "* Version v1, v2 required"},
			},
		},
	}
	before := machine(m)
	if _, err := stripped(stripMachine)(m); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, machine(m)); diff != "" {
		t.Error(diff)
	}
	if m.ManagedFields != nil || m.Finalizers != nil || len(m.Annotations) != 4 || m.Spec.ProviderID != "" || m.Status.Conditions[0].Message != "" {
		t.Errorf("stripped Machine = %+v", m)
	}
	if m.Status.Conditions[1].Message != "* Version v1, v2 required" {
		t.Errorf("stripped condition = %+v, want its message", m.Status.Conditions[1])
	}
	if before.DeleteAnnotation == "" {
		t.Error("DeleteMark is empty for an annotation without a value")
	}
}

func TestSelect(t *testing.T) {
	no := false
	selector := func(key, value string) metav1.LabelSelector {
		return metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
	policy := func(name string, spec v1alpha1.RepairPolicySpec) v1alpha1.RepairPolicy {
		return v1alpha1.RepairPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	}
	going := policy("0-going", v1alpha1.RepairPolicySpec{})
	going.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	policies := []v1alpha1.RepairPolicy{
		policy("z-all", v1alpha1.RepairPolicySpec{Workers: true}),
		policy("b-prod", v1alpha1.RepairPolicySpec{Selector: selector("env", "prod")}),
		policy("a-workers", v1alpha1.RepairPolicySpec{Selector: selector("env", "prod"), ControlPlanes: &no, Workers: true}),
		policy("0-unreadable", v1alpha1.RepairPolicySpec{Selector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: "Near"}}}}),
		going,
	}
	for _, c := range []struct{ env, kind, want string }{
		{"prod", "KubeadmControlPlane", "b-prod"},
		{"prod", "MachineDeployment", "a-workers"},
		{"prod", "RKE2ControlPlane", "b-prod"},
		{"test", "KubeadmControlPlane", "z-all"},
		{"test", "MachineSet", "z-all"},
		{"test", "Unheard", "z-all"},
	} {
		if got := Select(policies, map[string]string{"env": c.env}, c.kind); got == nil || got.Name != c.want {
			t.Errorf("Select(%+v) = %+v", c, got)
		}
	}
	// If its selector cannot be read, a policy applies to machines that no other policy selects.
	if got := Select(policies[1:], map[string]string{"env": "test"}, "KubeadmControlPlane"); got == nil || got.Name != "0-unreadable" {
		t.Errorf("Select = %+v, want 0-unreadable", got)
	}
	if got := Select(policies[1:], map[string]string{"env": "test"}, "MachineSet"); got != nil {
		t.Errorf("Select = %+v, want nil", got)
	}
}

// TestUnreadablePolicies checks that a policy that cannot be read still selects its machines, and why it cannot be
// read.
func TestUnreadablePolicies(t *testing.T) {
	for name, c := range map[string]struct {
		spec               string
		prod, test, worker object.ConditionStatus
		says               string
	}{
		"all can be read":       {`{"selector":{"matchLabels":{"env":"prod"}},"hold":"10m"}`, object.True, object.False, object.False, ""},
		"another field cannot":  {`{"selector":{"matchLabels":{"env":"prod"}},"workers":true,"hold":[]}`, object.True, object.False, object.True, "spec.hold: "},
		"what it selects":       {`{"selector":"env=prod"}`, object.Unknown, object.Unknown, object.Unknown, "spec.selector: "},
		"the selector is wrong": {`{"selector":{"matchExpressions":[{"key":"env","operator":"Near"}]}}`, object.Unknown, object.Unknown, object.False, "spec.selector: "},
	} {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha1.RepairPolicy{}
			if err := json.Unmarshal([]byte(`{"metadata":{"name":"p","uid":"1"},"spec":`+c.spec+`}`), p); err != nil {
				t.Fatal(err)
			}
			for _, s := range []struct {
				env, kind string
				want      object.ConditionStatus
			}{{"prod", "KubeadmControlPlane", c.prod}, {"test", "KubeadmControlPlane", c.test}, {"prod", "MachineSet", c.worker}} {
				if got := Selects(p, map[string]string{"env": s.env}, s.kind); got != s.want {
					t.Errorf("%s of %s: Selects = %s, want %s", s.kind, s.env, got, s.want)
				}
			}
			got := Policy(p)
			if got.Name != "p" || got.UID != "1" || !strings.HasPrefix(got.Unreadable, c.says) || (got.Unreadable == "") != (c.says == "") {
				t.Errorf("Policy = %+v", got)
			}
		})
	}
}

func TestPolicyTakesWhatIsSaid(t *testing.T) {
	s := v1alpha1.RepairPolicySpec{
		Methods: []v1alpha1.RepairMethod{v1alpha1.MethodSurge}, MaxAttempts: 7, Hold: &v1alpha1.Duration{Duration: time.Minute},
		Checks: v1alpha1.RepairChecks{
			NodeStartup:             &v1alpha1.Duration{},
			UnhealthyNodeConditions: []v1alpha1.UnhealthyCondition{{Type: "Disk", Status: "True", Timeout: v1alpha1.Duration{Duration: time.Second}}},
		},
		Escalation: []v1alpha1.EscalationStep{{Name: "reboot", Timeout: v1alpha1.Duration{Duration: time.Hour}}},
		// Negative or zero values are rejected, and the defaults apply.
		Limits:   v1alpha1.RepairPolicyLimits{Window: &v1alpha1.Duration{}},
		Timeouts: v1alpha1.RepairTimeouts{ScaleUp: &v1alpha1.Duration{Duration: -time.Second}, Ready: &v1alpha1.Duration{}},
	}
	got := Policy(&v1alpha1.RepairPolicy{Spec: s})
	want := Policy(&v1alpha1.RepairPolicy{})
	if len(want.Methods) != 4 || len(want.Checks.Node) != 2 || want.Attempts != 3 {
		t.Errorf("default policy = %+v", want)
	}
	want.Methods = map[v1alpha1.RepairMethod]bool{v1alpha1.MethodSurge: true}
	want.Attempts, want.Hold, want.Checks.NodeStartup = 7, time.Minute, 0
	want.Checks.Node = []remediator.Check{{Type: "Disk", Status: object.True, Timeout: time.Second}}
	want.Escalation = []remediator.EscalationStep{{Name: "reboot", Timeout: time.Hour}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTestedVersions(t *testing.T) {
	provider := func(name, kind, version string) clusterctlv1.Provider {
		return clusterctlv1.Provider{ProviderName: name, Type: kind, Version: version}
	}
	kubeadm, _ := ownerkind.Named("KubeadmControlPlane")
	const controlPlane = string(clusterctlv1.ControlPlaneProviderType)
	for _, c := range []struct {
		want      bool
		inventory []clusterctlv1.Provider
	}{
		{false, nil},
		{true, []clusterctlv1.Provider{provider("kubeadm", controlPlane, "v1.14.2"), provider("kubeadm", string(clusterctlv1.BootstrapProviderType), "v1.13.0")}},
		{true, []clusterctlv1.Provider{provider("kubeadm", controlPlane, "v1.14.0-rc.1"), provider("rke2", controlPlane, "v0.9.0")}},
		{false, []clusterctlv1.Provider{provider("kubeadm", controlPlane, "v1.15.0")}},
		{false, []clusterctlv1.Provider{provider("kubeadm", controlPlane, "v1.14.2"), provider("kubeadm", controlPlane, "v1.13.1")}},
		{false, []clusterctlv1.Provider{provider("kubeadm", controlPlane, "v1.140.0")}},
		{false, []clusterctlv1.Provider{provider("kubeadm", controlPlane, "")}},
	} {
		if got := testedVersions(c.inventory, kubeadm); got != c.want {
			t.Errorf("%+v: testedVersions = %v", c.inventory, got)
		}
	}
}

// TestAbout checks that a request, which may outlive its machine briefly, does not belong to a new machine of the same
// name.
func TestAbout(t *testing.T) {
	r := &v1alpha1.SurgeRemediation{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", UID: "1"}}}}
	for uid, want := range map[types.UID]bool{"1": true, "2": false} {
		if got := matchesMachine(r, &remediator.Machine{UID: uid}); got != want {
			t.Errorf("about(%s) = %v", uid, got)
		}
	}
	if !matchesMachine(&v1alpha1.SurgeRemediation{}, &remediator.Machine{UID: "1"}) {
		t.Error("about = false for a request without an owner reference")
	}
}

// TestUpgradePending checks that an upgrade is pending as in the preflight checks of Cluster API, also at the
// intermediate step of an upgrade over several versions.
func TestUpgradePending(t *testing.T) {
	for _, c := range []struct {
		owner, topology, step string
		want                  bool
	}{
		{"v1.35.0", "v1.35.0", "", false},
		{"v1.34.0", "v1.35.0", "", true},
		{"v1.34.0", "v1.36.0", "v1.35.0", true},
		{"v1.35.0", "v1.36.0", "v1.35.0", false},
	} {
		cluster := &clusterv1.Cluster{}
		cluster.Spec.Topology.Version = c.topology
		if c.step != "" {
			cluster.Annotations = map[string]string{clusterv1.ClusterTopologyUpgradeStepAnnotation: c.step, "other": ""}
		}
		stripCluster(cluster)
		l := &observation{clusterObject: cluster, facts: &remediator.Facts{Owner: remediator.OwnerFacts{Version: c.owner}}}
		l.topology("")
		if got := l.facts.Cluster.UpgradePending; got != c.want {
			t.Errorf("%+v: UpgradePending = %v", c, got)
		}
	}
}

// TestUnwired checks that only a MachineHealthCheck that can act on the machine without scute is reported.
func TestUnwired(t *testing.T) {
	limit := func(n intstr.IntOrString) func(*clusterv1.MachineHealthCheck) {
		return func(c *clusterv1.MachineHealthCheck) { c.Spec.Remediation.TriggerIf.UnhealthyLessThanOrEqualTo = &n }
	}
	refers := func(apiVersion, kind string) func(*clusterv1.MachineHealthCheck) {
		return func(c *clusterv1.MachineHealthCheck) {
			c.Spec.Remediation.TemplateRef = clusterv1.MachineHealthCheckRemediationTemplateReference{APIVersion: apiVersion, Kind: kind, Name: "t"}
		}
	}
	for name, c := range map[string]struct {
		is   func(*clusterv1.MachineHealthCheck)
		want string
	}{
		"the owner remediates": {func(*clusterv1.MachineHealthCheck) {}, "theirs"},
		"another remediates":   {refers("infrastructure.cluster.x-k8s.io/v1beta1", "Metal3RemediationTemplate"), "theirs"},
		"wired":                {refers(v1alpha1.GroupVersion().String(), TemplateKind), ""},
		"of another cluster":   {func(c *clusterv1.MachineHealthCheck) { c.Spec.ClusterName = "other" }, ""},
		"of other machines":    {func(c *clusterv1.MachineHealthCheck) { c.Spec.Selector.MatchLabels["pool"] = "b" }, ""},
		"selects nothing":      {func(c *clusterv1.MachineHealthCheck) { c.Spec.Selector.MatchLabels["pool"] = "no label/" }, ""},
		"paused": {func(c *clusterv1.MachineHealthCheck) {
			c.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
		}, ""},
		"going":                    {func(c *clusterv1.MachineHealthCheck) { c.DeletionTimestamp = &metav1.Time{Time: time.Now()} }, ""},
		"acts up to 40 %":          {limit(intstr.FromString("40%")), "theirs"},
		"never acts":               {limit(intstr.FromInt32(0)), ""},
		"never acts, as a percent": {limit(intstr.FromString("0%")), ""},
		"a range overrules a limit": {func(c *clusterv1.MachineHealthCheck) {
			limit(intstr.FromInt32(0))(c)
			c.Spec.Remediation.TriggerIf.UnhealthyInRange = "[1-2]"
		}, "theirs"},
	} {
		check := clusterv1.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}}
		check.Spec.ClusterName, check.Spec.Selector.MatchLabels = "blue", map[string]string{"pool": "a"}
		c.is(&check)
		l := &observation{
			facts: &remediator.Facts{Owner: remediator.OwnerFacts{Owner: remediator.Owner{Cluster: "blue"}}, Machines: make([]remediator.Machine, 1)},
			found: []*clusterv1.Machine{{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"pool": "a"}}}},
		}
		l.setHealthChecks([]clusterv1.MachineHealthCheck{check})
		if got := l.facts.Machines[0].OtherHealthCheck; got != c.want {
			t.Errorf("%s: Unwired = %q, want %q", name, got, c.want)
		}
	}
}

// TestPassed checks that Passed considers all MachineHealthChecks that select the machine and create requests for
// scute, with the status of their latest spec.
func TestPassed(t *testing.T) {
	check := func(change func(*clusterv1.MachineHealthCheck)) clusterv1.MachineHealthCheck {
		c := clusterv1.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
		c.Spec.ClusterName, c.Spec.Selector.MatchLabels = "blue", map[string]string{"pool": "a"}
		c.Spec.Remediation.TemplateRef = clusterv1.MachineHealthCheckRemediationTemplateReference{APIVersion: v1alpha1.GroupVersion().String(), Kind: TemplateKind, Name: "t"}
		c.Status = clusterv1.MachineHealthCheckStatus{ObservedGeneration: 2, ExpectedMachines: new(int32(3)), CurrentHealthy: new(int32(3))}
		if change != nil {
			change(&c)
		}
		return c
	}
	well := check(nil)
	ill := check(func(c *clusterv1.MachineHealthCheck) { c.Status.CurrentHealthy = new(int32(2)) })
	for name, c := range map[string]struct {
		checks []clusterv1.MachineHealthCheck
		want   object.ConditionStatus
	}{
		"none":              {nil, object.Absent},
		"all are healthy":   {[]clusterv1.MachineHealthCheck{well}, object.True},
		"one is not":        {[]clusterv1.MachineHealthCheck{ill}, object.False},
		"one of two checks": {[]clusterv1.MachineHealthCheck{ill, well}, object.False},
		"the other of two":  {[]clusterv1.MachineHealthCheck{well, ill}, object.False},
		"of an older spec":  {[]clusterv1.MachineHealthCheck{check(func(c *clusterv1.MachineHealthCheck) { c.Generation = 3 })}, object.False},
		"nothing said yet": {[]clusterv1.MachineHealthCheck{check(func(c *clusterv1.MachineHealthCheck) {
			c.Status = clusterv1.MachineHealthCheckStatus{ObservedGeneration: 2}
		})}, object.False},
		"does not ask scute":     {[]clusterv1.MachineHealthCheck{check(func(c *clusterv1.MachineHealthCheck) { c.Spec.Remediation.TemplateRef.Kind = "OtherTemplate" })}, object.Absent},
		"of another cluster":     {[]clusterv1.MachineHealthCheck{check(func(c *clusterv1.MachineHealthCheck) { c.Spec.ClusterName = "other" })}, object.Absent},
		"of machines of another": {[]clusterv1.MachineHealthCheck{check(func(c *clusterv1.MachineHealthCheck) { c.Spec.Selector.MatchLabels["pool"] = "b" })}, object.Absent},
	} {
		l := &observation{
			facts: &remediator.Facts{Owner: remediator.OwnerFacts{Owner: remediator.Owner{Cluster: "blue"}}, Machines: make([]remediator.Machine, 1)},
			found: []*clusterv1.Machine{{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"pool": "a"}}}},
		}
		l.setHealthChecks(c.checks)
		if got := l.facts.Machines[0].HealthChecksPass; got != c.want {
			t.Errorf("%s: Passed = %q, want %q", name, got, c.want)
		}
	}
}

// TestRequest checks which parts of a request the facts contain.
func TestRequest(t *testing.T) {
	r := &v1alpha1.SurgeRemediation{}
	if f := request(r); f.OrdersCopied || f.Abort || f.Hold || !f.Manual {
		t.Errorf("request = %+v", f)
	}
	r.Spec.Abort = true
	r.Annotations = map[string]string{object.CarriedAnnotation: "true"}
	if f := request(r); !f.OrdersCopied || !f.Abort {
		t.Errorf("request = %+v", f)
	}
}

// TestTestedWhileListsFail checks that owners do not wait one after another for an API server that does not answer,
// and that a failure that took no time is not kept.
func TestTestedWhileListsFail(t *testing.T) {
	lists, now, took, works := 0, time.Now(), callTimeout, false
	live := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			lists++
			now = now.Add(took)
			if !works {
				return apierrors.NewServerTimeout(schema.GroupResource{Resource: "providers"}, "list", 0)
			}
			if list, ok := list.(*clusterctlv1.ProviderList); ok {
				list.Items = []clusterctlv1.Provider{{ProviderName: "kubeadm", Type: string(clusterctlv1.ControlPlaneProviderType), Version: "v1.14.2"}}
			}
			return nil
		},
	})
	o := &Observer{live: live, now: func() time.Time { return now }}
	kind := ownerkind.Kind{Provider: "kubeadm", Tested: []string{"v1.14"}}
	for range 3 {
		if o.Tested(t.Context(), kind) {
			t.Error("tested, want unknown")
		}
	}
	if lists != 1 {
		t.Errorf("%d lists, want 1", lists)
	}
	now, took = now.Add(callTimeout), 0
	o.Tested(t.Context(), kind)
	if lists != 2 {
		t.Errorf("%d lists after %s, want 2", lists, callTimeout)
	}
	if works = true; !o.Tested(t.Context(), kind) {
		t.Error("unknown after a failure that took no time, want tested")
	}
}
