package remediation

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"scute.dev/api/v1alpha1"
	"scute.dev/remediator/observe"
	"scute.dev/remediator/ownerkind"
	"scute.dev/remediator/runner"
)

func TestLimitFollowsTheSize(t *testing.T) {
	for _, c := range []struct {
		spec         int32
		machines     int
		provisioning bool
		want         int32
	}{
		{spec: 1, machines: 1, want: 1}, // none may fail, but one can be replaced
		{spec: 1, machines: 2, provisioning: true, want: 2},
		{spec: 3, machines: 0, want: 1},
		{spec: 3, machines: 3, want: 1},
		{spec: 3, machines: 3, provisioning: true, want: 2},
		{spec: 5, machines: 3, want: 1}, // is scaled up, or surges by its replicas
		{spec: 5, machines: 4, provisioning: true, want: 2},
		{spec: 5, machines: 5, want: 2},
		{spec: 5, machines: 6, want: 2},
		{spec: 7, machines: 7, want: 3},
		{spec: 9, machines: 9, want: 4},
	} {
		p := plane{owner: ownerOf(&controlplanev1.KubeadmControlPlane{Spec: controlplanev1.KubeadmControlPlaneSpec{Replicas: &c.spec}}), machines: make([]clusterv1.Machine, c.machines)}
		if got := maxUnhealthy(p.size(), c.provisioning); got != c.want {
			t.Errorf("%d machines of %d, new machine %v: limit = %d, want %d", c.machines, c.spec, c.provisioning, got, c.want)
		}
	}
	if got := (&plane{owner: ownerOf(&controlplanev1.KubeadmControlPlane{}), machines: make([]clusterv1.Machine, 3)}).size(); got != 1 {
		t.Errorf("size of a control plane without replicas = %d, want 1", got)
	}
}

func ownerOf(o client.Object) ownerkind.Owner {
	owner, _ := ownerkind.As(o)
	return owner
}

func after(d time.Duration) *v1alpha1.Duration { return &v1alpha1.Duration{Duration: d} }

func TestHealthCheckSaysWhatThePolicySays(t *testing.T) {
	p := &v1alpha1.RepairPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "repair"}}
	type check struct {
		On, Status string
		Seconds    int32
	}
	read := func() (startup int32, checks []check) {
		s := healthCheckSpec(p, "a", 2)
		if s.ClusterName != "a" || s.Remediation.TriggerIf.UnhealthyLessThanOrEqualTo.IntValue() != 2 || s.Remediation.TemplateRef.Name != "scute-repair" {
			t.Errorf("healthCheckSpec = %+v", s)
		}
		for _, c := range s.Checks.UnhealthyNodeConditions {
			checks = append(checks, check{"node " + string(c.Type), string(c.Status), *c.TimeoutSeconds})
		}
		for _, c := range s.Checks.UnhealthyMachineConditions {
			checks = append(checks, check{"machine " + c.Type, string(c.Status), *c.TimeoutSeconds})
		}
		return *s.Checks.NodeStartupTimeoutSeconds, checks
	}
	startup, checks := read()
	if diff := cmp.Diff([]check{{"node Ready", "False", 300}, {"node Ready", "Unknown", 300}}, checks); diff != "" || startup != 600 {
		t.Errorf("defaults: startup %d, checks (-want +got):\n%s", startup, diff)
	}
	p.Spec.Checks = v1alpha1.RepairChecks{
		NodeStartup:                after(5 * time.Second), // the minimum of a MachineHealthCheck is 30 s
		UnhealthyNodeConditions:    []v1alpha1.UnhealthyCondition{{Type: "DiskPressure", Status: "True", Timeout: *after(1500 * time.Millisecond)}},
		UnhealthyMachineConditions: []v1alpha1.UnhealthyCondition{{Type: "EtcdPodHealthy", Status: "False", Timeout: *after(0)}},
	}
	startup, checks = read()
	if diff := cmp.Diff([]check{{"node DiskPressure", "True", 2}, {"machine EtcdPodHealthy", "False", 0}}, checks); diff != "" || startup != 30 {
		t.Errorf("own checks: startup %d, checks (-want +got):\n%s", startup, diff)
	}
	p.Spec.Checks.NodeStartup = after(0)
	if startup, _ := read(); startup != 0 {
		t.Errorf("startup = %d, want it disabled", startup)
	}
}

func TestRival(t *testing.T) {
	kcp := &controlplanev1.KubeadmControlPlane{ObjectMeta: metav1.ObjectMeta{Name: "a-cp"}}
	machines := []clusterv1.Machine{{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
		clusterv1.ClusterNameLabel: "a", clusterv1.MachineControlPlaneLabel: "", "tier": "gold",
	}}}}
	check := func(name, cluster string, selects map[string]string) clusterv1.MachineHealthCheck {
		return clusterv1.MachineHealthCheck{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       clusterv1.MachineHealthCheckSpec{ClusterName: cluster, Selector: metav1.LabelSelector{MatchLabels: selects}},
		}
	}
	ours := check("ours", "a", map[string]string{clusterv1.ClusterNameLabel: "a"})
	ours.Labels = map[string]string{policyLabel: "repair"}
	wired := check("wired", "a", map[string]string{clusterv1.ClusterNameLabel: "a"})
	wired.Spec.Remediation.TemplateRef = clusterv1.MachineHealthCheckRemediationTemplateReference{APIVersion: "scute.dev/v1alpha1", Kind: observe.TemplateKind, Name: "own"}
	going := check("going", "a", map[string]string{clusterv1.ClusterNameLabel: "a"})
	going.DeletionTimestamp = &metav1.Time{}
	*going.DeletionTimestamp = metav1.Now()
	for name, c := range map[string]struct {
		checks []clusterv1.MachineHealthCheck
		want   string
		wired  bool
	}{
		"none":                  {nil, "", false},
		"ours":                  {[]clusterv1.MachineHealthCheck{ours}, "", false},
		"of workers":            {[]clusterv1.MachineHealthCheck{check("w", "a", map[string]string{clusterv1.MachineDeploymentNameLabel: "md"})}, "", false},
		"of another cluster":    {[]clusterv1.MachineHealthCheck{check("b", "b", nil)}, "", false},
		"of the whole cluster":  {[]clusterv1.MachineHealthCheck{ours, check("all", "a", nil)}, "all", false},
		"by a label of theirs":  {[]clusterv1.MachineHealthCheck{check("gold", "a", map[string]string{"tier": "gold"})}, "gold", false},
		"by the control plane":  {[]clusterv1.MachineHealthCheck{check("cp", "a", map[string]string{clusterv1.MachineControlPlaneNameLabel: "a-cp"})}, "cp", false},
		"wired to scute":        {[]clusterv1.MachineHealthCheck{wired}, "", true},
		"wired, and another":    {[]clusterv1.MachineHealthCheck{wired, check("all", "a", nil)}, "all", true},
		"one that goes already": {[]clusterv1.MachineHealthCheck{going}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			other, wired := conflictingCheck(c.checks, kcp, "a", machines)
			got := ""
			if other != nil {
				got = other.Name
			}
			if got != c.want || wired != c.wired {
				t.Errorf("rival = %q, wired %v", got, wired)
			}
		})
	}
}

// TestTemplatesOfHealthChecks checks that a MachineHealthCheck is reported if its template does not exist, so that it
// requests nothing, or cannot be read, so that its requests are held.
func TestTemplatesOfHealthChecks(t *testing.T) {
	p := &v1alpha1.RepairPolicy{ObjectMeta: metav1.ObjectMeta{Name: "repair"}}
	check := func(name, cluster, template string) clusterv1.MachineHealthCheck {
		c := clusterv1.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1.MachineHealthCheckSpec{ClusterName: cluster}}
		c.Spec.Remediation.TemplateRef = clusterv1.MachineHealthCheckRemediationTemplateReference{APIVersion: "scute.dev/v1alpha1", Kind: observe.TemplateKind, Name: template}
		return c
	}
	theirs := check("theirs", "a", "gone")
	theirs.Spec.Remediation.TemplateRef.APIVersion = "infrastructure.cluster.x-k8s.io/v1beta1"
	bad := v1alpha1.SurgeRemediationTemplate{ObjectMeta: metav1.ObjectMeta{Name: "bad"}}
	bad.Unreadable.Spec = &v1alpha1.UnreadablePart{Field: "spec.template.spec.hold.until", Problem: "it is a list"}
	templates := []v1alpha1.SurgeRemediationTemplate{{ObjectMeta: metav1.ObjectMeta{Name: "good"}}, bad}
	checks := []clusterv1.MachineHealthCheck{
		check("well", "a", "good"), check("own", "a", "scute-repair"), theirs, check("elsewhere", "b", "gone"), check("lost", "a", "gone"), check("held", "a", "bad"),
	}
	want := []string{
		"cluster a: MachineHealthCheck lost refers to SurgeRemediationTemplate gone, which does not exist, so it requests no remediation: create it, or set the templateRef to scute-repair",
		"cluster a: MachineHealthCheck held refers to SurgeRemediationTemplate bad, which is invalid (spec.template.spec.hold.until cannot be read: it is a list), so its requests wait: correct the field",
	}
	if diff := cmp.Diff(want, templateProblems(p, &scope{clusters: []string{"a"}}, checks, templates)); diff != "" {
		t.Error(diff)
	}
}

func TestProblemsNameTheFieldAndTheRemedy(t *testing.T) {
	step := func(template string) []v1alpha1.EscalationStep {
		return []v1alpha1.EscalationStep{{Name: "reboot", Timeout: *after(time.Minute), Template: runtime.RawExtension{Raw: []byte(template)}}}
	}
	fine := `{"apiVersion":"infrastructure.cluster.x-k8s.io/v1beta1","kind":"Metal3Remediation","spec":{}}`
	costly := step(fine)
	costly[0].FailedWhen = []v1alpha1.FieldValue{{JSONPath: "..a..a..a", Value: "x"}}
	for name, c := range map[string]struct {
		spec v1alpha1.RepairPolicySpec
		want string
	}{
		"nothing said":  {v1alpha1.RepairPolicySpec{}, ""},
		"good steps":    {v1alpha1.RepairPolicySpec{Escalation: step(fine)}, ""},
		"bad selector":  {v1alpha1.RepairPolicySpec{Selector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}}, "spec.selector.matchExpressions[0].operator: "},
		"no template":   {v1alpha1.RepairPolicySpec{Escalation: step("")}, "spec.escalation[0].template: it is not an object"},
		"no kind":       {v1alpha1.RepairPolicySpec{Escalation: step(`{"apiVersion":"v1"}`)}, `spec.escalation[0].template: apiVersion "v1" and kind "": both`},
		"a role":        {v1alpha1.RepairPolicySpec{Escalation: step(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role"}`)}, "kind Role grants access"},
		"a secret":      {v1alpha1.RepairPolicySpec{Escalation: step(`{"apiVersion":"v1","kind":"Secret"}`)}, "kind Secret grants access"},
		"a large one":   {v1alpha1.RepairPolicySpec{Escalation: step(strings.Repeat(" ", 64<<10) + fine)}, "the limit is 65536"},
		"a costly path": {v1alpha1.RepairPolicySpec{Escalation: costly}, "spec.escalation[0].failedWhen[0].jsonPath: reading JSONPath ..a..a..a"},
		"derived":       {v1alpha1.RepairPolicySpec{Checks: v1alpha1.RepairChecks{UnhealthyMachineConditions: []v1alpha1.UnhealthyCondition{{Type: "Ready", Status: "False"}}}}, "spec.checks.unhealthyMachineConditions[0].type: Ready"},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(problems(&v1alpha1.RepairPolicy{Spec: c.spec}), "; ")
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("problems = %q, want %q", got, c.want)
			}
		})
	}
}

func TestPolicyStatus(t *testing.T) {
	all := &scope{clusters: []string{"a", "b"}, machines: 6}
	for name, c := range map[string]struct {
		spec    v1alpha1.RepairPolicySpec
		scope   *scope
		totals  runner.Totals
		wrong   []string
		reason  string
		says    string
		stalled bool
		calm    time.Time
		opens   time.Time
	}{
		"used up":      {scope: all, totals: runner.Totals{Unhealthy: 1}, opens: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), reason: "Unhealthy", says: "; perWindow is used up, the next one may start at 2026-05-01T12:00:00Z; 6"},
		"well":         {scope: all, reason: "Watching", says: "6 machines of 2 clusters watched"},
		"one of one":   {scope: &scope{clusters: []string{"a"}, machines: 1}, reason: "Watching", says: "1 machine of 1 cluster watched"},
		"nothing":      {scope: &scope{}, reason: "Watching", says: "selects no cluster"},
		"unhealthy":    {scope: all, totals: runner.Totals{Unhealthy: 1}, reason: "Unhealthy", says: "1 unhealthy, none in progress"},
		"at work":      {scope: all, totals: runner.Totals{Unhealthy: 2, Active: 1}, reason: "Remediating", says: "1 remediation in progress, 2 unhealthy"},
		"mass failure": {scope: all, totals: runner.Totals{Unhealthy: 5, MassFailure: true}, reason: "MassFailure", says: "a mass failure: nothing starts before it has ended; look for the common cause; 0 in progress, 5 unhealthy; 6"},
		"calm":         {scope: all, totals: runner.Totals{Unhealthy: 1, Active: 1}, calm: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), reason: "MassFailure", says: "a mass failure has ended: nothing starts before 2026-05-01T12:00:00Z; 1 in progress, 1 unhealthy; 6"},
		"dry run":      {spec: v1alpha1.RepairPolicySpec{DryRun: true}, scope: all, reason: "DryRun", says: "dry run, decisions are only recorded"},
		"paused":       {spec: v1alpha1.RepairPolicySpec{PauseRequests: []string{"an audit"}}, scope: all, reason: "Paused", says: "an audit"},
		"refused":      {scope: &scope{}, wrong: []string{"spec.x is wrong"}, reason: "Refused", says: "spec.x is wrong", stalled: true},
		"in the way":   {scope: all, wrong: []string{"cluster a: theirs"}, reason: "Conflict", says: "cluster a: theirs; 6 machines", stalled: true},
		"overlapping":  {scope: &scope{clusters: []string{"a"}, machines: 3, elsewhere: []string{"b", "c", "d", "e"}}, reason: "Watching", says: "4 clusters also selected by an earlier policy, which applies: b, c, d and 1 more"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha1.RepairPolicy{ObjectMeta: metav1.ObjectMeta{Generation: 3}, Spec: c.spec}
			s := policyStatus(p, c.scope, c.totals, c.wrong, c.calm, c.opens)
			ready := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady)
			if ready.Reason != c.reason || !strings.Contains(s.Message, c.says) || s.ObservedGeneration != 3 {
				t.Errorf("reason %s, generation %d: %s", ready.Reason, s.ObservedGeneration, s.Message)
			}
			if stalled := meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionStalled); stalled != c.stalled || stalled == (ready.Status == "True") {
				t.Errorf("Stalled = %v, Ready = %s", stalled, ready.Status)
			}
			if s.Clusters != len(c.scope.clusters) || s.Machines != c.scope.machines || s.Unhealthy != c.totals.Unhealthy || s.Active != c.totals.Active || s.MassFailure != (c.totals.MassFailure || !c.calm.IsZero()) {
				t.Errorf("status = %+v", s)
			}
		})
	}
}

func TestRestingControlPlanesAreLeftAlone(t *testing.T) {
	rests := func(change func(*clusterv1.Cluster, *controlplanev1.KubeadmControlPlane)) bool {
		kcp := &controlplanev1.KubeadmControlPlane{}
		p := plane{cluster: &clusterv1.Cluster{}, owner: ownerOf(kcp)}
		change(p.cluster, kcp)
		return p.isPausedOrDeleting()
	}
	yes, now := true, metav1.Now()
	for name, change := range map[string]func(*clusterv1.Cluster, *controlplanev1.KubeadmControlPlane){
		"paused": func(c *clusterv1.Cluster, _ *controlplanev1.KubeadmControlPlane) { c.Spec.Paused = &yes },
		"paused alone": func(_ *clusterv1.Cluster, k *controlplanev1.KubeadmControlPlane) {
			k.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
		},
		"deleted":         func(c *clusterv1.Cluster, _ *controlplanev1.KubeadmControlPlane) { c.DeletionTimestamp = &now },
		"deleted by hand": func(_ *clusterv1.Cluster, k *controlplanev1.KubeadmControlPlane) { k.DeletionTimestamp = &now },
	} {
		if !rests(change) {
			t.Errorf("%s: resting = false, want true", name)
		}
	}
	if rests(func(*clusterv1.Cluster, *controlplanev1.KubeadmControlPlane) {}) {
		t.Error("resting = true for a healthy control plane")
	}
}

func TestBesidesNamesWhatRemediatesWorkersWithoutScute(t *testing.T) {
	p := &v1alpha1.RepairPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "repair"}}
	check := func(name, cluster, pool string) clusterv1.MachineHealthCheck {
		c := clusterv1.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.Spec.ClusterName, c.Spec.Selector.MatchLabels = cluster, map[string]string{"pool": pool}
		return c
	}
	wired := check("wired", "a", "x")
	wired.Spec.Remediation.TemplateRef = clusterv1.MachineHealthCheckRemediationTemplateReference{APIVersion: "scute.dev/v1alpha1", Kind: observe.TemplateKind, Name: "scute-repair"}
	worker := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"pool": "x"}}}
	s := &scope{workers: map[string][]*clusterv1.Machine{"a": {worker}}}
	got := competingChecks(p, s, []clusterv1.MachineHealthCheck{wired, check("theirs", "a", "x"), check("others", "a", "y"), check("elsewhere", "b", "x")})
	want := []string{"cluster a: MachineHealthCheck theirs remediates workers itself, so scute does not: set its templateRef to SurgeRemediationTemplate scute-repair, or delete it"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestHealthCheckBelongsToItsCluster checks that the MachineHealthCheck has its Cluster as owner when it is created, so
// that a move of the Cluster includes it.
func TestHealthCheckBelongsToItsCluster(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, clusterv1.AddToScheme, controlplanev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	r := &policyReconciler{live: fake.NewClientBuilder().WithScheme(scheme).Build()}
	p := &v1alpha1.RepairPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "repair", UID: "policy"}}
	pl := &plane{
		cluster: &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "a", UID: "cluster"}},
		owner:   ownerOf(&controlplanev1.KubeadmControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "a-control-plane"}}),
	}
	if err := r.check(t.Context(), p, pl, nil); err != nil {
		t.Fatal(err)
	}
	var checks clusterv1.MachineHealthCheckList
	if err := r.live.List(t.Context(), &checks); err != nil || len(checks.Items) != 1 {
		t.Fatalf("got %d MachineHealthChecks, error %v", len(checks.Items), err)
	}
	owners := make(map[string]bool) // whether the owner is the controller, by kind and UID
	for _, ref := range checks.Items[0].OwnerReferences {
		owners[ref.Kind+" "+string(ref.UID)] = ptr.Deref(ref.Controller, false)
	}
	if diff := cmp.Diff(map[string]bool{"Cluster cluster": false, "RepairPolicy policy": true}, owners); diff != "" {
		t.Error(diff)
	}
}

// TestWorkersWithoutKubeadm checks that the workers of a policy are watched even if the API server does not serve
// KubeadmControlPlanes.
func TestWorkersWithoutKubeadm(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, ownerkind.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	p := &v1alpha1.RepairPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "repair"}, Spec: v1alpha1.RepairPolicySpec{Workers: true}}
	cached := fake.NewClientBuilder().WithScheme(scheme).WithObjects(p,
		&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "a"}},
		&clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "a-1"}, Spec: clusterv1.MachineSpec{ClusterName: "a"}},
	).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, from client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, is := list.(*controlplanev1.KubeadmControlPlaneList); is {
				return &cache.ErrResourceNotCached{GVK: controlplanev1.GroupVersion.WithKind("KubeadmControlPlane")}
			}
			return from.List(ctx, list, opts...)
		},
	}).Build()
	s, err := readScope(t.Context(), cached, p)
	if err != nil {
		t.Fatal(err)
	}
	if s.machines != 1 || len(s.planes) != 0 {
		t.Errorf("got %d machines and %d control planes, want 1 and 0", s.machines, len(s.planes))
	}
}
