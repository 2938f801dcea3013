package remediation

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/assets"
	"scute.dev/test/harness"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

// once returns a function like sync.OnceValues, for three values.
func once(f func() (*scuted.Installation, scuted.Programs, error)) func() (*scuted.Installation, scuted.Programs, error) {
	type made struct {
		in *scuted.Installation
		p  scuted.Programs
	}
	get := sync.OnceValues(func() (made, error) {
		in, p, err := f()
		return made{in, p}, err
	})
	return func() (*scuted.Installation, scuted.Programs, error) {
		m, err := get()
		return m.in, m.p, err
	}
}

func (s *suite) install() (*scuted.Installation, scuted.Programs, error) {
	ctx, cancel := context.WithTimeout(context.Background(), testbed.StartTimeout)
	defer cancel()
	programs, err := scuted.Build(ctx, os.Stderr, assets.Faulty)
	if err != nil {
		return nil, scuted.Programs{}, err
	}
	in, err := scuted.Install(ctx, s.side, programs, // also the kinds that request a reboot
		"remediation.escalation[0].group=coordination.k8s.io", "remediation.escalation[0].resources={leases}",
		"remediation.escalation[1].group=infrastructure.cluster.x-k8s.io", "remediation.escalation[1].resources={metal3remediations}",
		"remediation.escalation[2].group=bmc.tinkerbell.org", "remediation.escalation[2].resources={jobs}")
	return in, programs, err
}

// daemon starts the real scuted with the chart's ServiceAccount until the test ends.
func daemon(t *testing.T, o scuted.DaemonOptions) *scuted.Daemon {
	t.Helper()
	in, _, err := shared.installed()
	harness.Must(t, err)
	o.Args = append(o.Args, "--allow-addresses", strings.Join(shared.bed.Cloud().Addresses(), ","))
	return harness.Daemon(t, in, o)
}

// policyName is the name of each test's policy.
const policyName = "repair"

// policySpec returns a policy for all clusters with timeouts of seconds. change adjusts it.
func policySpec(change func(*v1alpha1.RepairPolicySpec)) v1alpha1.RepairPolicySpec {
	short := func(d time.Duration) *v1alpha1.Duration { return &v1alpha1.Duration{Duration: d} }
	s := v1alpha1.RepairPolicySpec{
		Checks: v1alpha1.RepairChecks{
			NodeStartup: short(5 * time.Minute),
			UnhealthyNodeConditions: []v1alpha1.UnhealthyCondition{
				{Type: "Ready", Status: "False", Timeout: v1alpha1.Duration{Duration: time.Second}},
				{Type: "Ready", Status: "Unknown", Timeout: v1alpha1.Duration{Duration: time.Second}},
			},
		},
		Limits:   v1alpha1.RepairPolicyLimits{Cooldown: short(time.Second), MassFailure: v1alpha1.PolicyMassFailure{Cooldown: short(2 * time.Second)}},
		Timeouts: v1alpha1.RepairTimeouts{ScaleUp: short(2 * time.Minute), Ready: short(3 * time.Minute), Removal: short(5 * time.Minute)},
	}
	if change != nil {
		change(&s)
	}
	return s
}

// policy creates a policy for all clusters of a namespace from policySpec.
func policy(ctx context.Context, t *testing.T, namespace string, change func(*v1alpha1.RepairPolicySpec)) *v1alpha1.RepairPolicy {
	t.Helper()
	p := &v1alpha1.RepairPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: policyName}, Spec: policySpec(change)}
	harness.Must(t, shared.admin.Create(ctx, p))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := client.IgnoreNotFound(shared.admin.Delete(ctx, p)); err != nil {
			t.Log(err)
		}
	})
	return p
}

// methods allows only these methods.
func methods(allowed ...v1alpha1.RepairMethod) func(*v1alpha1.RepairPolicySpec) {
	return func(s *v1alpha1.RepairPolicySpec) { s.Methods = allowed }
}
