package remediation

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/pkg/etcd"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/remediator"
	"scute.dev/test/assets"
	"scute.dev/test/comparison"
	"scute.dev/test/harness"
	"scute.dev/test/rotation"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

// writeTo is the page into which `make comparison` writes the table.
var writeTo = flag.String("comparison", "", "write the table of TestComparison into this page; all cases must run") //nolint:gochecknoglobals // a flag

// comparedFor is the time limit of a case.
const comparedFor = 15 * time.Minute

// TestComparison causes the same fault at the same time in a cluster with a plain MachineHealthCheck and in one that
// scute remediates. With scute the result must be at least as good, and at least as many members of etcd must answer at
// all times.
func TestComparison(t *testing.T) {
	daemon(t, scuted.DaemonOptions{})
	var mu sync.Mutex
	var cases []comparison.Case
	all := comparedFaults()
	t.Run("", func(t *testing.T) { // all at once
		for name, f := range rotation.Cases(t, 8, all) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				c := comparison.Case{Name: name, Row: f.row}
				c.Plain, c.Scute = f.compare(harness.Deadline(t, 2*comparedFor), t)
				f.judge(t, &c)
				mu.Lock()
				defer mu.Unlock()
				cases = append(cases, c)
			})
		}
	})
	if *writeTo == "" {
		return
	}
	if writeTable(t, cases); len(cases) != len(all) {
		t.Errorf("%d of %d cases completed; the rows of the others are from an earlier run", len(cases), len(all))
	}
}

func writeTable(t *testing.T, cases []comparison.Case) {
	t.Helper()
	modules, err := assets.FindModules(t.Context())
	harness.Must(t, err)
	page, err := os.ReadFile(*writeTo)
	harness.Must(t, err)
	text, err := comparison.Write(string(page), assets.VersionOf(modules.ClusterAPI), cases)
	harness.Must(t, err)
	harness.Must(t, os.WriteFile(*writeTo, []byte(text), 0o600))
}

// compared is a fault that two clusters get. The victims are healthy machines unless a step chooses others.
type compared struct {
	row     string // in the findings
	cluster testbed.Cluster
	workers bool
	victims int                              // one if zero
	policy  func(*v1alpha1.RepairPolicySpec) // both systems use its checks
	before  step                             // happens before remediation is configured
	fault   step                             // happens afterwards
	fresh   bool                             // the cluster is new and has no machines yet
	// firstStuck blocks the cluster's first machine from the beginning.
	firstStuck bool
	recovers   bool   // the victims may stay
	goes       int    // healthy machines that are deleted in any case
	to         string // final version of these machines, if it changes
}

// says returns the state of a machine's remediation by scute, or nothing for the plain system.
func (l *lane) says(machine string) (phase v1alpha1.RemediationPhase, message string) {
	if l.diary == nil {
		return "", ""
	}
	return l.diary.now(machine)
}

// step changes a cluster.
type step func(ctx context.Context, l *lane)

// lane is one of the two clusters.
type lane struct {
	*cluster
	fault   *compared
	repair  func(context.Context, *lane) // configures remediation
	diary   *diary                       // only for scute
	quorum  *sampler
	before  []clusterv1.Machine
	victims []clusterv1.Machine
	began   time.Time
	outcome comparison.Outcome
	release func() // unblocks machines that are created from now on
	over    bool   // complete, and nothing remains of a remediation
}

func (f *compared) compare(ctx context.Context, t *testing.T) (plain, scute comparison.Outcome) {
	t.Helper()
	p, s := f.lane(ctx, t, "plain"), f.lane(ctx, t, "scute")
	p.repair, s.repair = plainly, byScute
	for _, l := range []*lane{p, s} {
		l.prepare(ctx)
	}
	for _, l := range []*lane{p, s} {
		l.suffer(ctx)
	}
	until := time.Now().Add(comparedFor)
	for time.Now().Before(until) {
		p.look(ctx)
		s.look(ctx)
		// The plain system gets twice the time that scute needed, and one turn. Then it counts as not ending.
		if s.over && (p.over || time.Since(p.began) > 2*s.outcome.After+turn()) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	p.conclude(ctx)
	s.conclude(ctx)
	return p.outcome, s.outcome
}

// turn returns the longest delay between a change that no watch reports and scute's next check, plus that of the
// control plane's controller, which waits for the etcd behind a stopped kubelet.
func turn() time.Duration {
	busy := &remediator.State{Active: &remediator.Active{}}
	ours := remediator.RequeueAfter(busy, &remediator.Facts{Owner: remediator.OwnerFacts{Found: true}}, time.Now())
	return ours + etcd.DefaultCallTimeout
}

func (f *compared) judge(t *testing.T, c *comparison.Case) {
	t.Helper()
	for system, o := range map[string]comparison.Outcome{"plain": c.Plain, "scute": c.Scute} {
		t.Logf("%s: %q after %s; at least %d members answered; unserved %v, lost %d, touched %v %s",
			system, o.End, o.After.Round(100*time.Millisecond), o.Members, o.Unserved, o.Lost, o.Touched, o.Missing)
	}
	for _, worse := range c.Worse() {
		t.Errorf("worse with scute: %s", worse)
	}
	if slower := c.Slower(turn()); slower != "" {
		t.Log(slower) // only logged: a busy machine may slow one of the two down
	}
}

func (f *compared) lane(ctx context.Context, t *testing.T, system string) *lane {
	t.Helper()
	spec := f.cluster
	spec.Namespace = namespaceOf(t) + "-" + system
	l := &lane{cluster: beginCluster(ctx, t, spec), fault: f}
	if f.firstStuck {
		l.release = l.stuckNewMachines(t)
	}
	return l
}

// prepare prepares the cluster up to the fault.
func (l *lane) prepare(ctx context.Context) {
	if !l.fault.fresh {
		harness.Must(l.t, shared.side.WaitAvailable(ctx, l.Namespace, l.Name))
		l.before = l.machines(ctx, !l.fault.workers)
		l.victims = choose(l.before, max(1, l.fault.victims))
	}
	l.quorum = l.watchQuorum(l.t)
	if l.fault.before != nil {
		l.fault.before(ctx, l)
	}
}

// suffer configures remediation and causes the fault.
func (l *lane) suffer(ctx context.Context) {
	l.repair(ctx, l)
	if l.fault.fault != nil {
		l.fault.fault(ctx, l)
	}
	l.began = time.Now()
}

// look records when the cluster is complete, and when nothing remains of its remediation.
func (l *lane) look(ctx context.Context) {
	if l.over {
		return
	}
	l.outcome.Missing = l.missing(ctx)
	if l.outcome.Missing != "" {
		l.outcome.After = 0 // the earlier time was premature
		return
	}
	if l.outcome.After == 0 {
		l.outcome.After = time.Since(l.began)
	}
	if l.diary != nil { // Cluster API may leave annotations behind, scute may not
		left, err := l.left(ctx)
		harness.Must(l.t, err)
		l.outcome.Missing = strings.Join(left, "; ")
	}
	l.over = l.outcome.Missing == ""
}

func (l *lane) conclude(ctx context.Context) {
	l.quorum.stop()
	o := &l.outcome
	now := l.machines(ctx, !l.fault.workers)
	is := func(list []clusterv1.Machine, uid types.UID) bool {
		return slices.ContainsFunc(list, func(m clusterv1.Machine) bool { return m.UID == uid && m.DeletionTimestamp.IsZero() })
	}
	gone := 0
	for i := range l.victims {
		if !is(now, l.victims[i].UID) {
			gone++
		}
	}
	for i := range l.before {
		if uid := l.before[i].UID; !is(l.victims, uid) && !is(now, uid) {
			o.Lost++
		}
	}
	o.Lost = max(0, o.Lost-l.fault.goes)
	o.Members, o.Unserved = l.quorum.answering(), l.quorum.unserved()
	if l.spec.ExternalEtcd {
		o.Members = comparison.None
	}
	switch {
	case !l.over:
		o.After = time.Since(l.began)
	case gone > 0:
		o.End = "replaced"
	default:
		o.End = "recovered"
	}
}

// missing returns what the cluster lacks compared to the expected end, or "".
func (l *lane) missing(ctx context.Context) string {
	for i := range l.victims {
		m := &clusterv1.Machine{}
		err := shared.admin.Get(ctx, client.ObjectKeyFromObject(&l.victims[i]), m)
		if client.IgnoreNotFound(err) != nil {
			l.t.Fatal(err)
		}
		if err == nil && !l.fault.recovers {
			return m.Name + " is there: " + saidOf(m)
		}
	}
	return l.unfinished(ctx)
}

// unfinished returns what the cluster lacks: existing and ready machines, or answering members of etcd.
func (l *lane) unfinished(ctx context.Context) string {
	controlPlanes := int(*l.kcp(ctx).Spec.Replicas)
	for controlPlane, wanted := range map[bool]int{true: controlPlanes, false: l.spec.Workers} {
		machines := l.machines(ctx, controlPlane)
		if len(machines) != wanted {
			return fmt.Sprintf("%d machines, %d wanted (control plane: %v)", len(machines), wanted, controlPlane)
		}
		for i := range machines {
			m := &machines[i]
			if !m.DeletionTimestamp.IsZero() || m.Status.Phase != string(clusterv1.MachinePhaseRunning) || !conditions.IsTrue(m, clusterv1.MachineReadyCondition) {
				return m.Name + " is " + m.Status.Phase + ": " + saidOf(m)
			}
			if to := l.fault.to; to != "" && controlPlane != l.fault.workers && m.Spec.Version != to {
				return m.Name + " has " + m.Spec.Version
			}
		}
	}
	members, err := shared.bed.Cloud().Etcd(ctx, l.Namespace+"/"+l.Name)
	harness.Must(l.t, err)
	answer := 0
	for _, m := range members {
		if m.Answers {
			answer++
		}
	}
	if !l.spec.ExternalEtcd && (answer != len(members) || answer != controlPlanes) {
		return fmt.Sprintf("%d of %d members answer, of %d machines", answer, len(members), controlPlanes)
	}
	return ""
}

// saidOf returns Cluster API's message about the remediation of a machine, or why the machine is not ready.
func saidOf(m *clusterv1.Machine) string {
	for _, name := range []string{clusterv1.MachineOwnerRemediatedCondition, clusterv1.MachineReadyCondition} {
		if k := conditions.Get(m, name); k != nil && k.Status != metav1.ConditionTrue {
			return fmt.Sprintf("%s=%s: %s", name, k.Status, strings.Join(strings.Fields(k.Message), " "))
		}
	}
	return "healthy"
}

// byScute configures scute to remediate the cluster, and waits until it watches all machines.
func byScute(ctx context.Context, l *lane) {
	l.diary = keepDiary(l.t, l.Namespace)
	p := policy(ctx, l.t, l.Namespace, func(s *v1alpha1.RepairPolicySpec) {
		s.Workers = l.fault.workers
		if l.fault.policy != nil {
			l.fault.policy(s)
		}
	})
	awaitPolicy(ctx, l.t, p, "it watches the machines", func(s *v1alpha1.RepairPolicyStatus) bool { return s.Machines >= len(l.before) })
}

// plainly configures Cluster API to remediate the cluster: with a MachineHealthCheck that has the checks of scute's
// policy and no limit, as Cluster API's documentation recommends for control planes.
func plainly(ctx context.Context, l *lane) {
	operator := metav1.LabelSelectorOpExists
	if l.fault.workers {
		operator = metav1.LabelSelectorOpDoesNotExist
	}
	check := &clusterv1.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: l.Namespace, Name: "plain"}}
	check.Spec.ClusterName = l.Name
	check.Spec.Selector = metav1.LabelSelector{
		MatchLabels:      map[string]string{clusterv1.ClusterNameLabel: l.Name},
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: clusterv1.MachineControlPlaneLabel, Operator: operator}},
	}
	from := policySpec(l.fault.policy).Checks
	seconds := func(d v1alpha1.Duration) *int32 { return new(int32(d.Seconds())) }
	check.Spec.Checks.NodeStartupTimeoutSeconds = seconds(*from.NodeStartup)
	for _, k := range from.UnhealthyNodeConditions {
		check.Spec.Checks.UnhealthyNodeConditions = append(check.Spec.Checks.UnhealthyNodeConditions, clusterv1.UnhealthyNodeCondition{
			Type: corev1.NodeConditionType(k.Type), Status: corev1.ConditionStatus(k.Status), TimeoutSeconds: seconds(k.Timeout),
		})
	}
	for _, k := range from.UnhealthyMachineConditions {
		check.Spec.Checks.UnhealthyMachineConditions = append(check.Spec.Checks.UnhealthyMachineConditions, clusterv1.UnhealthyMachineCondition{
			Type: k.Type, Status: metav1.ConditionStatus(k.Status), TimeoutSeconds: seconds(k.Timeout),
		})
	}
	harness.Must(l.t, shared.admin.Create(ctx, check))
	harness.Await(ctx, l.t, "the MachineHealthCheck watches the machines", func() string {
		harness.Must(l.t, shared.admin.Get(ctx, client.ObjectKeyFromObject(check), check))
		if n := len(check.Status.Targets); n < len(l.before) {
			return fmt.Sprintf("it watches %d", n)
		}
		return ""
	})
}
