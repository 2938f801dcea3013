package observe

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"scute.dev/api/v1alpha1"
	"scute.dev/config/crd"
	"scute.dev/remediator"
)

// TestLimitsHaveTheDefaultsOfTheSchema checks that the limits without a RepairLimits equal those of an empty one.
func TestLimitsHaveTheDefaultsOfTheSchema(t *testing.T) {
	definitions, err := crd.Definitions(crd.Files)
	if err != nil {
		t.Fatal(err)
	}
	spec := definitions["RepairLimits"].Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	defaults := make(map[string]any)
	for _, path := range [][]string{
		{"atOnce"},
		{"perWindow"},
		{"window"},
		{"massFailure", "percent"},
		{"massFailure", "floor"},
		{"massFailure", "cooldown"},
		{"failureDomains", "atOnce"},
		{"failureDomains", "regionLabel"},
		{"failureDomains", "massFailure", "percent"},
		{"failureDomains", "massFailure", "floor"},
		{"failureDomains", "massFailure", "cooldown"},
	} {
		field, at := spec, defaults
		for i, name := range path {
			field = field.Properties[name]
			if i < len(path)-1 {
				if at[name] == nil {
					at[name] = make(map[string]any)
				}
				at, _ = at[name].(map[string]any)
				continue
			}
			if field.Default == nil {
				t.Fatalf("%v has no default", path)
			}
			at[name] = json.RawMessage(field.Default.Raw)
		}
	}
	data, err := json.Marshal(map[string]any{"spec": defaults})
	if err != nil {
		t.Fatal(err)
	}
	var written v1alpha1.RepairLimits
	if err := json.Unmarshal(data, &written); err != nil || written.Unread() != nil {
		t.Fatal(err, written.Unread())
	}
	if diff := cmp.Diff(Limits(&written), Limits(&v1alpha1.RepairLimits{})); diff != "" {
		t.Errorf("defaults of the schema and without an object differ (-schema +without):\n%s", diff)
	}
	if written.Spec.FailureDomains.RegionLabel != v1alpha1.DefaultRegionLabel {
		t.Errorf("region label = %q", written.Spec.FailureDomains.RegionLabel)
	}
}

// TestUnreadableLimits checks that no default replaces a field of unreadable RepairLimits.
func TestUnreadableLimits(t *testing.T) {
	var l v1alpha1.RepairLimits
	if err := yaml.Unmarshal([]byte("{spec: {atOnce: 1, window: 1d}}"), &l); err != nil {
		t.Fatal(err)
	}
	if got := Limits(&l); got.Unreadable == "" || got.AtOnce != 0 || got.Window != 0 {
		t.Errorf("Limits = %+v", got)
	}
	set := v1alpha1.RepairLimits{Spec: v1alpha1.RepairLimitsSpec{MassFailure: v1alpha1.FleetMassFailure{Cooldown: &v1alpha1.Duration{}}}}
	if got := Limits(&set); got.Mass.Cooldown != 0 || got.DomainMass.Cooldown != 10*time.Minute {
		t.Errorf("an explicit zero cooldown was replaced by the default: %+v", got)
	}
}

// TestMachinesOfTheFleet checks that machines that policies select are counted by namespace, failure domain and region,
// and by policy.
func TestMachinesOfTheFleet(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, err := range []error{clusterv1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	cluster := func(namespace, name, region string) *clusterv1.Cluster {
		c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"name": name}}}
		if region != "" {
			c.Labels["region"] = region
		}
		return c
	}
	machine := func(namespace, cluster, name, domain string, plane bool) *clusterv1.Machine {
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cluster + name}, Spec: clusterv1.MachineSpec{ClusterName: cluster, FailureDomain: domain}}
		if plane {
			m.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""}
		}
		return m
	}
	policy := func(namespace string, workers bool, selects string) *v1alpha1.RepairPolicy {
		return &v1alpha1.RepairPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p"}, Spec: v1alpha1.RepairPolicySpec{
			Workers: workers, Selector: metav1.LabelSelector{MatchLabels: map[string]string{"name": selects}},
		}}
	}
	rehearsal := policy("four", false, "a")
	rehearsal.Name, rehearsal.Spec.DryRun = "first", true
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects([]client.Object{
		policy("one", false, "a"), cluster("one", "a", "east"), cluster("one", "b", "east"),
		machine("one", "a", "1", "1", true), machine("one", "a", "2", "2", true), machine("one", "a", "w", "1", false), machine("one", "b", "1", "1", true),
		policy("two", true, "a"), cluster("two", "a", ""), machine("two", "a", "1", "1", true), machine("two", "a", "w", "1", false), machine("two", "a", "x", "", false),
		rehearsal, policy("four", false, "a"), cluster("four", "a", ""), machine("four", "a", "1", "1", true),
		cluster("three", "a", "east"), machine("three", "a", "1", "1", true),
	}...).Build()
	got, err := countMachines(t.Context(), c, "region")
	if err != nil {
		t.Fatal(err)
	}
	want := remediator.NamespaceCounts{{Namespace: "one"}: {"east/1": 1, "east/2": 1}, {Namespace: "two"}: {"1": 2, "": 1}, {Namespace: "four", DryRun: true}: {"1": 1}}
	if diff := cmp.Diff(want, got.machines); diff != "" {
		t.Errorf("machines (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"one/p": 2, "two/p": 3, "four/first": 1}, got.watched); diff != "" {
		t.Errorf("by policy (-want +got)\n%s", diff)
	}
}

// slowCache is a cache whose lists of Machines are slow.
type slowCache struct {
	cache.Cache
	asked     chan struct{}
	durations chan time.Duration
	now       *time.Time
}

func (s *slowCache) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if _, ok := list.(*clusterv1.MachineList); ok {
		s.asked <- struct{}{}
		*s.now = s.now.Add(<-s.durations)
	}
	return nil
}

// TestTheCensusKeepsNobodyWaiting checks that while one caller counts the machines of the fleet, which tenants can make
// slow, other callers use the earlier counts, and that counting takes at most a 20th of the time.
func TestTheCensusKeepsNobodyWaiting(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	s := &slowCache{asked: make(chan struct{}), durations: make(chan time.Duration), now: &now}
	o := &Observer{cache: s, now: func() time.Time { return now }}
	look := func() error {
		_, err := o.machines(t.Context(), "region")
		return err
	}
	counts := func(takes time.Duration, meanwhile func()) {
		t.Helper()
		done := make(chan error)
		go func() { done <- look() }()
		select {
		case <-s.asked:
		case err := <-done:
			t.Fatalf("the machines were not counted: %v", err)
		}
		meanwhile()
		s.durations <- takes
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	counts(9*time.Second, func() {})
	now = now.Add(179 * time.Second)
	if err := look(); err != nil {
		t.Fatal(err)
	}
	now = now.Add(2 * time.Second)
	counts(time.Millisecond, func() {
		if err := look(); err != nil {
			t.Fatal(err)
		}
	})
	now = now.Add(countTTL)
	counts(time.Millisecond, func() {})
}
