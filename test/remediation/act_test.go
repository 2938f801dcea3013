package remediation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	infrav1 "sigs.k8s.io/cluster-api/test/infrastructure/docker/api/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/object"
	"scute.dev/remediator"
	"scute.dev/remediator/act"
	"scute.dev/test/harness"
	"scute.dev/test/testbed"
)

// performer performs actions for one owner and counts the writes.
type performer struct {
	act.Executor
	c      *cluster
	facts  *remediator.Facts
	writes *atomic.Int32
	// between is called once, between an action's read and its write.
	between func()
}

// perform returns a performer for an owner of the cluster.
func (c *cluster) perform(kind remediator.OwnerKind, owner client.Object) *performer {
	c.t.Helper()
	p := &performer{c: c, writes: &atomic.Int32{}}
	live, err := client.NewWithWatch(shared.side.Config(), client.Options{Scheme: shared.admin.Scheme()})
	harness.Must(c.t, err)
	p.Client = interceptor.NewClient(live, interceptor.Funcs{
		Patch: func(ctx context.Context, w client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			p.writes.Add(1)
			if between := p.between; between != nil {
				p.between = nil
				between()
			}
			return w.Patch(ctx, o, patch, opts...)
		},
		SubResourcePatch: func(ctx context.Context, w client.Client, sub string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			p.writes.Add(1)
			return w.SubResource(sub).Patch(ctx, o, patch, opts...)
		},
		Create: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			p.writes.Add(1)
			return w.Create(ctx, o, opts...)
		},
		Delete: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			p.writes.Add(1)
			return w.Delete(ctx, o, opts...)
		},
	})
	p.facts = &remediator.Facts{Owner: remediator.OwnerFacts{Owner: remediator.Owner{
		Kind: string(kind), Namespace: c.Namespace, Name: owner.GetName(), UID: owner.GetUID(), Cluster: c.Name,
	}}}
	return p
}

// do performs an action twice, and checks that the second time writes nothing.
func (p *performer) do(ctx context.Context, a remediator.Action) {
	p.c.t.Helper()
	if err := p.Perform(ctx, p.facts, a); err != nil {
		p.c.t.Fatal(err)
	}
	before := p.writes.Load()
	if err := p.Perform(ctx, p.facts, a); err != nil {
		p.c.t.Fatalf("again: %v", err)
	}
	if more := p.writes.Load() - before; more != 0 {
		p.c.t.Errorf("%s %q on %s: %d more writes at the second time", a.Type, a.Value, a.Machine.Name, more)
	}
}

// look sets the machines of the facts to all existing ones.
func (p *performer) look(ctx context.Context) {
	p.c.t.Helper()
	p.facts.Machines = nil
	for _, controlPlane := range []bool{true, false} {
		for _, m := range p.c.machines(ctx, controlPlane) {
			p.facts.Machines = append(p.facts.Machines, remediator.Machine{Name: m.Name, UID: m.UID})
		}
	}
}

// refused checks that an action is refused because of another client's change, and writes nothing.
func (p *performer) refused(ctx context.Context, a remediator.Action, says string) {
	p.c.t.Helper()
	before := p.writes.Load()
	err := p.Perform(ctx, p.facts, a)
	if !errors.Is(err, act.ErrPreconditionFailed) || !strings.Contains(err.Error(), says) {
		p.c.t.Errorf("%s %q on %s: %v, want ErrPreconditionFailed that says %q", a.Type, a.Value, a.Machine.Name, err, says)
	}
	if more := p.writes.Load() - before; more != 0 {
		p.c.t.Errorf("%s %q on %s: %d writes, though it was refused", a.Type, a.Value, a.Machine.Name, more)
	}
}

func subject(o client.Object) remediator.Subject {
	return remediator.Subject{Name: o.GetName(), UID: o.GetUID()}
}

func on(m client.Object, do remediator.ActionType, value string) remediator.Action {
	return remediator.Action{Type: do, Machine: subject(m), Value: value}
}

func scale(m client.Object, where remediator.Where, from, to int32) remediator.Action {
	return remediator.Action{Type: remediator.Scale, Machine: subject(m), Where: where, Expect: from, Replicas: to}
}

func relaxedFor(machine string) string {
	return fmt.Sprintf(`{"machine":%q,"timestamp":%q,"retryCount":0}`, machine, time.Now().UTC().Format(time.RFC3339))
}

// fresh reads an object again.
func fresh[T client.Object](ctx context.Context, t *testing.T, o T) T {
	t.Helper()
	harness.Must(t, shared.admin.Get(ctx, client.ObjectKeyFromObject(o), o))
	return o
}

func wantAnnotation(ctx context.Context, t *testing.T, o client.Object, key, want string) {
	t.Helper()
	if got := fresh(ctx, t, o).GetAnnotations()[key]; got != want {
		t.Errorf("%s of %s = %q, want %q", key, o.GetName(), got, want)
	}
}

// infra returns a Machine's infrastructure machine.
func (c *cluster) infra(ctx context.Context, m *clusterv1.Machine) *infrav1.DevMachine {
	c.t.Helper()
	return fresh(ctx, c.t, &infrav1.DevMachine{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Spec.InfrastructureRef.Name}})
}

// TestActPlain performs every action on a plain cluster of three. Control planes surge by the documented method and by
// replicas.
func TestActPlain(t *testing.T) {
	t.Parallel()
	t.Run("writes", func(t *testing.T) { t.Parallel(); writes(harness.Deadline(t, 8*time.Minute), t) })
	actOn(t, testbed.Cluster{ControlPlanes: 3, Workers: 1, CertificateExpiryDays: 7}, map[string]actCase{
		"surge by the certificates": func(ctx context.Context, _ *testing.T, p *performer) {
			p.rolloutSurge(ctx, remediator.SetCertificates, time.Now().UTC().Format(time.RFC3339))
		},
		"relaxed surge of the leader": relaxedSurge,
		"surge cancelled":             cancelled,
		"surge by replicas":           func(ctx context.Context, _ *testing.T, p *performer) { p.replicaSurge(ctx, remediator.AtOwner) },
		"worker":                      func(ctx context.Context, t *testing.T, p *performer) { surgeWorkers(ctx, t, p.c, remediator.AtOwner) },
	})
}

// TestActTopology tests control planes that are managed by their Cluster's topology. They surge by an annotation of the
// infrastructure machine and by replicas, and a machine is handed over to its owner.
func TestActTopology(t *testing.T) {
	t.Parallel()
	actOn(t, testbed.Cluster{ControlPlanes: 3, Workers: 1, Topology: true}, map[string]actCase{
		"replicas are the topology's": func(ctx context.Context, _ *testing.T, p *performer) {
			m, _ := p.victim(ctx)
			p.refused(ctx, scale(m, remediator.AtOwner, 3, 5), "set them there")
			p.refused(ctx, scale(m, remediator.AtTopology, 1, 5), "are 3, neither the original 1")
			p.refused(ctx, on(m, remediator.SetCertificates, time.Now().UTC().Format(time.RFC3339)), "certificatesExpiryDays is not set")
			p.replicaSurge(ctx, remediator.AtTopology)
		},
		"surge by the template's name": func(ctx context.Context, _ *testing.T, p *performer) {
			p.rolloutSurge(ctx, remediator.SetClonedFrom, "another-one")
		},
		"worker": func(ctx context.Context, t *testing.T, p *performer) {
			surgeWorkers(ctx, t, p.c, remediator.AtTopology)
		},
		"handed over and taken back": handsOver,
	})
}

// actCase performs actions on its own cluster.
type actCase func(ctx context.Context, t *testing.T, p *performer)

// actOn runs each case on its own cluster, so that a failed case does not affect the others.
func actOn(t *testing.T, spec testbed.Cluster, cases map[string]actCase) {
	t.Helper()
	for name, play := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := harness.Deadline(t, 8*time.Minute)
			c := newCluster(ctx, t, spec)
			play(ctx, t, c.perform(remediator.ControlPlane, c.kcp(ctx)))
		})
	}
}

// writes tests the actions that replace nothing, one after the other on one cluster.
func writes(ctx context.Context, t *testing.T) {
	c := newCluster(ctx, t, testbed.Cluster{ControlPlanes: 3, CertificateExpiryDays: 7})
	p := c.perform(remediator.ControlPlane, c.kcp(ctx))
	for name, check := range map[string]func(context.Context, *testing.T, *performer, *clusterv1.Machine){
		"marks": marks, "relaxed": relaxes, "touch": touches, "request": requests, "step object": stepObjects, "leadership": leads,
		"refusals": refusals, "written in between": inBetween, "foreign replicas": foreignReplicas,
	} {
		t.Run(name, func(t *testing.T) {
			p.with(t, func() {
				p.reset(ctx)
				m, _ := p.victim(ctx)
				check(ctx, t, p, m)
			})
		})
	}
}

// reset reverts what an earlier, failed case may have left on the control plane, and waits until the cluster is
// healthy.
func (p *performer) reset(ctx context.Context) {
	p.c.t.Helper()
	kcp := p.c.kcp(ctx)
	p.c.change(ctx, &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: p.c.Namespace, Name: p.c.Name}}, `{"spec":{"paused":null}}`)
	p.c.change(ctx, kcp, `{"spec":{"replicas":3}}`)
	for _, key := range []string{clusterv1.PausedAnnotation, controlplanev1.RemediationInProgressAnnotation} {
		p.c.annotate(ctx, kcp, key, "")
	}
	for _, m := range p.c.machines(ctx, true) {
		for _, key := range []string{
			v1alpha1.UnhealthyAnnotation, clusterv1.DeleteMachineAnnotation, clusterv1.MachineCertificatesExpiryDateAnnotation,
			clusterv1.MachineSkipRemediationAnnotation, clusterv1.PausedAnnotation,
		} {
			if _, there := m.Annotations[key]; there {
				p.c.annotate(ctx, &m, key, "")
			}
		}
	}
	p.settled(ctx, 3)
}

func foreignReplicas(ctx context.Context, t *testing.T, p *performer, m *clusterv1.Machine) {
	p.refused(ctx, scale(m, remediator.AtOwner, 5, 7), "are 3, neither the original 5")
	p.refused(ctx, scale(m, remediator.AtTopology, 3, 5), "has no topology")
	if err := p.Perform(ctx, p.facts, scale(m, remediator.AtOwner, 3, 4)); err == nil || errors.Is(err, act.ErrPreconditionFailed) {
		t.Errorf("scaling to an even number = %v, want the API server's error", err)
	}
}

// with makes the performer and its cluster report to a subtest.
func (p *performer) with(t *testing.T, do func()) {
	t.Helper()
	was := p.c.t
	p.c.t = t
	defer func() { p.c.t = was }()
	do()
}

func marks(ctx context.Context, t *testing.T, p *performer, m *clusterv1.Machine) {
	mark := `{"state":"Unhealthy","since":"2026-01-01T00:00:00Z","reason":"x","source":"Policy","remediation":"r"}`
	p.do(ctx, on(m, remediator.SetUnhealthy, mark))
	wantAnnotation(ctx, t, m, v1alpha1.UnhealthyAnnotation, mark)
	p.do(ctx, on(m, remediator.SetUnhealthy, ""))
	wantAnnotation(ctx, t, m, v1alpha1.UnhealthyAnnotation, "")

	p.do(ctx, on(m, remediator.SetDelete, remediator.DeleteValue))
	wantAnnotation(ctx, t, m, clusterv1.DeleteMachineAnnotation, remediator.DeleteValue)
	p.do(ctx, on(m, remediator.SetDelete, ""))
	wantAnnotation(ctx, t, m, clusterv1.DeleteMachineAnnotation, "")
	p.c.annotate(ctx, m, clusterv1.DeleteMachineAnnotation, "theirs")
	p.do(ctx, on(m, remediator.SetDelete, remediator.DeleteValue))
	p.do(ctx, on(m, remediator.SetDelete, ""))
	wantAnnotation(ctx, t, m, clusterv1.DeleteMachineAnnotation, "theirs")
	p.c.annotate(ctx, m, clusterv1.DeleteMachineAnnotation, "")

	later := time.Now().AddDate(1, 0, 0).UTC().Format(time.RFC3339) // makes no machine outdated
	p.do(ctx, on(m, remediator.SetCertificates, later))
	wantAnnotation(ctx, t, m, clusterv1.MachineCertificatesExpiryDateAnnotation, later)
	p.do(ctx, on(m, remediator.SetCertificates, ""))
	wantAnnotation(ctx, t, m, clusterv1.MachineCertificatesExpiryDateAnnotation, "")

	// The action is for an earlier machine with the same name, so it changes nothing.
	namesake := m.DeepCopy()
	namesake.UID = "earlier"
	for _, action := range []remediator.ActionType{remediator.SetUnhealthy, remediator.SetDelete, remediator.SetCertificates, remediator.SetClonedFrom} {
		p.refused(ctx, on(namesake, action, "2026-01-01T00:00:00Z"), "another one has its name")
		p.do(ctx, on(namesake, action, ""))
	}
	p.do(ctx, on(namesake, remediator.ClearConditions, ""))
}

func relaxes(ctx context.Context, t *testing.T, p *performer, m *clusterv1.Machine) {
	kcp := p.c.kcp(ctx)
	value := relaxedFor(m.Name)
	p.do(ctx, on(m, remediator.SetRelaxed, value))
	wantAnnotation(ctx, t, kcp, controlplanev1.RemediationInProgressAnnotation, value)
	other := m.DeepCopy()
	other.Name = "other"
	p.refused(ctx, on(other, remediator.SetRelaxed, relaxedFor("other")), "for another machine")
	p.do(ctx, on(other, remediator.SetRelaxed, ""))
	wantAnnotation(ctx, t, kcp, controlplanev1.RemediationInProgressAnnotation, value)
	p.do(ctx, on(m, remediator.SetRelaxed, ""))
	wantAnnotation(ctx, t, kcp, controlplanev1.RemediationInProgressAnnotation, "")
}

func touches(ctx context.Context, t *testing.T, p *performer, m *clusterv1.Machine) {
	kcp := p.c.kcp(ctx)
	p.do(ctx, on(m, remediator.Touch, "once"))
	wantAnnotation(ctx, t, kcp, object.TouchAnnotation, "once")
	p.do(ctx, on(m, remediator.Touch, ""))
	wantAnnotation(ctx, t, kcp, object.TouchAnnotation, "")
}

func requests(ctx context.Context, t *testing.T, p *performer, m *clusterv1.Machine) {
	request := &v1alpha1.SurgeRemediation{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name}}
	key := client.ObjectKeyFromObject(request)
	p.do(ctx, on(m, remediator.CreateRequest, ""))
	fresh(ctx, t, request)
	if refs := request.OwnerReferences; len(refs) != 1 || refs[0].UID != m.UID || refs[0].Controller != nil ||
		request.Labels[clusterv1.ClusterNameLabel] != p.c.Name || len(request.Finalizers) != 1 {
		t.Errorf("metadata of the request = %+v, want the Machine as its owner, a label and a finalizer", request.ObjectMeta)
	}
	// Actions for an earlier machine with the same name neither delete nor adopt the request.
	namesake := m.DeepCopy()
	namesake.UID = "earlier"
	p.do(ctx, on(namesake, remediator.DeleteRequest, ""))
	p.refused(ctx, on(namesake, remediator.CreateRequest, ""), "gone")
	p.do(ctx, on(m, remediator.DeleteRequest, ""))
	if err := shared.admin.Get(ctx, key, request); !apierrors.IsNotFound(err) {
		t.Errorf("Get after DeleteRequest = %v, want not found", err)
	}

	// A request that a health check created is kept with a finalizer too, and released when the check deletes it.
	made := &v1alpha1.SurgeRemediation{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, OwnerReferences: []metav1.OwnerReference{
		{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: m.Name, UID: m.UID},
	}}}
	harness.Must(t, shared.admin.Create(ctx, made))
	p.do(ctx, on(m, remediator.CreateRequest, `{"abort":true,"hold":{"reason":"disk"}}`))
	if said := fresh(ctx, t, made).Spec; !said.Abort || said.Hold == nil || said.Hold.Reason != "disk" {
		t.Errorf("spec of the request = %+v, want that of the earlier request", said)
	}
	// A hold or an abort that an operator has just removed is not lost together with the request.
	harness.Must(t, shared.admin.Patch(ctx, made, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"abort":null}}`))))
	p.refused(ctx, on(m, remediator.DeleteRequest, `{"abort":true,"hold":{"reason":"disk"}}`), "has removed the hold or abort")
	p.do(ctx, on(m, remediator.CreateRequest, `{"abort":true,"hold":{"reason":"disk"}}`))
	if fresh(ctx, t, made).Spec.Abort {
		t.Error("CreateRequest wrote an abort that the operator had removed")
	}
	harness.Must(t, shared.admin.Delete(ctx, made))
	if fresh(ctx, t, made).DeletionTimestamp.IsZero() {
		t.Error("the request is not being deleted")
	}
	p.do(ctx, on(m, remediator.DeleteRequest, ""))
	if err := shared.admin.Get(ctx, key, made); !apierrors.IsNotFound(err) {
		t.Errorf("Get after DeleteRequest = %v, want not found", err)
	}
}

func stepObjects(ctx context.Context, t *testing.T, p *performer, m *clusterv1.Machine) {
	template := func(text string) runtime.RawExtension { return runtime.RawExtension{Raw: []byte(text)} }
	policy := &v1alpha1.RepairPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: "escalation"}}
	policy.Spec.Selector.MatchLabels = map[string]string{"nobody": "here"}
	policy.Spec.Escalation = []v1alpha1.EscalationStep{
		{Name: "reboot", Template: template(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","annotations":{"for":"${node}"},"finalizers":["a.b/c"]},` +
			`"data":{"do":"reboot ${machine} on ${node} of ${cluster} in ${namespace} for $${machine}"}}`)},
		{Name: "secret", Template: template(`{"apiVersion":"v1","kind":"Secret"}`)},
		{Name: "role", Template: template(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding"}`)},
		{Name: "namespace", Template: template(`{"apiVersion":"v1","kind":"Namespace"}`)},
		{Name: "elsewhere", Template: template(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default"}}`)},
		{Name: "nothing", Template: template(`{"apiVersion":"nothing.example/v1","kind":"Nothing"}`)},
	}
	for i := range policy.Spec.Escalation {
		policy.Spec.Escalation[i].Timeout = v1alpha1.Duration{Duration: time.Minute}
	}
	harness.Must(t, shared.admin.Create(ctx, policy))
	p.facts.Policy.Name = policy.Name
	for _, step := range []string{"secret", "role", "namespace", "elsewhere", "nothing"} {
		err := p.Perform(ctx, p.facts, on(m, remediator.CreateStepObject, step))
		if err == nil || !strings.Contains(err.Error(), "spec.escalation["+step+"].template") {
			t.Errorf("CreateStepObject %s = %v, want an error about its template", step, err)
		}
	}
	p.refused(ctx, on(m, remediator.CreateStepObject, "unknown"), "no longer has step")
	p.do(ctx, on(m, remediator.DeleteStepObject, "unknown"))
	p.do(ctx, on(m, remediator.DeleteStepObject, "reboot"))

	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: remediator.StepObjectName(m.Name, "reboot")}}
	harness.Must(t, shared.admin.Create(ctx, object.DeepCopy()))
	p.refused(ctx, on(m, remediator.CreateStepObject, "reboot"), "did not create it")
	p.do(ctx, on(m, remediator.DeleteStepObject, "reboot"))
	harness.Must(t, shared.admin.Delete(ctx, fresh(ctx, t, object)))

	object = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: remediator.StepObjectName(m.Name, "reboot")}}
	p.do(ctx, on(m, remediator.CreateStepObject, "reboot"))
	fresh(ctx, t, object)
	node := m.Status.NodeRef.Name
	if got, want := object.Data["do"], fmt.Sprintf("reboot %s on %s of %s in %s for $%s", m.Name, node, p.c.Name, m.Namespace, m.Name); got != want {
		t.Errorf("rendered text = %q, want %q", got, want)
	}
	if object.Annotations["for"] != node || object.Labels[act.StepLabel] != m.Name || len(object.Finalizers) > 0 ||
		len(object.OwnerReferences) != 1 || object.OwnerReferences[0].UID != m.UID {
		t.Errorf("metadata of the object = %+v, want the Machine as its owner and no finalizer", object.ObjectMeta)
	}
	p.do(ctx, on(m, remediator.DeleteStepObject, "reboot"))
	if err := shared.admin.Get(ctx, client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
		t.Errorf("Get after DeleteStepObject = %v, want not found", err)
	}
}

// leader records requests to move the leadership. Another package tests the connection to etcd.
type leader struct {
	act.Etcd
	asked []string
}

func (l *leader) MoveLeader(_ context.Context, cluster types.NamespacedName, nodes []string, to string) error {
	l.asked = append(l.asked, fmt.Sprintf("%s by %v to %s", cluster, nodes, to))
	return nil
}

func leads(ctx context.Context, t *testing.T, p *performer, m *clusterv1.Machine) {
	p.facts.Machines = []remediator.Machine{{Name: m.Name, Node: "n1"}, {Name: "other", Node: "n2"}, {Name: "without"}}
	defer func() { p.facts.Machines, p.Etcd = nil, nil }()
	if err := p.Perform(ctx, p.facts, on(m, remediator.MoveLeadership, "n2")); err == nil {
		t.Error("MoveLeadership without a client of etcd = nil, want an error")
	}
	l := &leader{}
	p.Etcd = l
	p.do(ctx, on(m, remediator.MoveLeadership, "n2"))
	if want := fmt.Sprintf("%s/%s by [n1 n2] to n2", p.c.Namespace, p.c.Name); len(l.asked) != 2 || l.asked[0] != want {
		t.Errorf("requests = %q, want %q twice", l.asked, want)
	}
}

// refusals checks that every pause, hold or similar request stops each action that begins or advances a replacement,
// and no action that reverts something.
func refusals(ctx context.Context, t *testing.T, p *performer, m *clusterv1.Machine) {
	kcp := p.c.kcp(ctx)
	p.Etcd = &leader{}
	defer func() { p.Etcd = nil }()
	pauseCluster := func(paused bool) {
		harness.Must(t, shared.side.SetPaused(ctx, p.c.Namespace, p.c.Name, paused))
	}
	annotated := func(o client.Object, key string) func(bool) {
		return func(on bool) {
			p.c.annotate(ctx, o, key, map[bool]string{true: "yes", false: ""}[on])
		}
	}
	original := p.c.infra(ctx, m).Annotations[clusterv1.TemplateClonedFromNameAnnotation]
	for _, c := range []struct {
		says string
		set  func(bool)
	}{
		{"skip-remediation", annotated(m, clusterv1.MachineSkipRemediationAnnotation)},
		{"machine is paused", annotated(m, clusterv1.PausedAnnotation)},
		{"KubeadmControlPlane " + kcp.Name + " is paused", annotated(kcp, clusterv1.PausedAnnotation)},
		{"Cluster " + p.c.Name + " is paused (spec.paused)", pauseCluster},
	} {
		c.set(true)
		for _, a := range []remediator.Action{
			on(m, remediator.SetDelete, remediator.DeleteValue),
			on(m, remediator.SetCertificates, time.Now().UTC().Format(time.RFC3339)),
			on(m, remediator.SetClonedFrom, "another-one"),
			on(m, remediator.SetRelaxed, relaxedFor(m.Name)),
			on(m, remediator.HandOver, ""),
			on(m, remediator.MoveLeadership, "elsewhere"),
			scale(m, remediator.AtOwner, 3, 5),
		} {
			p.refused(ctx, a, c.says)
		}
		p.do(ctx, on(m, remediator.SetDelete, ""))
		p.do(ctx, on(m, remediator.SetCertificates, ""))
		p.do(ctx, on(m, remediator.SetClonedFrom, original))
		p.do(ctx, on(m, remediator.SetRelaxed, ""))
		p.do(ctx, scale(m, remediator.AtOwner, 5, 3))
		c.set(false)
	}
	was := p.facts.Owner
	defer func() { p.facts.Owner = was }()
	p.facts.Owner.UID = "earlier"
	p.refused(ctx, on(m, remediator.SetDelete, remediator.DeleteValue), "another one has its name")
	p.refused(ctx, scale(m, remediator.AtOwner, 3, 5), "another one has its name")
	p.do(ctx, scale(m, remediator.AtOwner, 5, 3))
	p.facts.Owner.Kind = "TalosControlPlane"
	for _, a := range []remediator.Action{on(m, remediator.SetDelete, remediator.DeleteValue), scale(m, remediator.AtOwner, 3, 5), on(m, remediator.HandOver, ""), on(m, remediator.Touch, "x")} {
		if err := p.Perform(ctx, p.facts, a); err == nil || !strings.Contains(err.Error(), "TalosControlPlane") {
			t.Errorf("%s of an unknown owner = %v, want an error", a.Type, err)
		}
	}
	p.do(ctx, on(m, remediator.SetUnhealthy, "seen")) // the unhealthy annotation is the only action for an unknown owner's machine
	p.do(ctx, on(m, remediator.SetUnhealthy, ""))
}

// inBetween checks that a change that another client makes between an action's read and its write is not overwritten,
// and is taken into account.
func inBetween(ctx context.Context, t *testing.T, p *performer, m *clusterv1.Machine) {
	p.between = func() { p.c.annotate(ctx, m, "test.scute.dev/theirs", "kept") }
	before := p.writes.Load()
	if err := p.Perform(ctx, p.facts, on(m, remediator.SetDelete, remediator.DeleteValue)); err != nil {
		t.Fatal(err)
	}
	if tries := p.writes.Load() - before; tries < 2 {
		t.Errorf("%d writes, want a retry after the conflict", tries)
	}
	wantAnnotation(ctx, t, m, "test.scute.dev/theirs", "kept")
	wantAnnotation(ctx, t, m, clusterv1.DeleteMachineAnnotation, remediator.DeleteValue)
	p.do(ctx, on(m, remediator.SetDelete, ""))

	p.between = func() { p.c.annotate(ctx, m, clusterv1.MachineSkipRemediationAnnotation, "yes") }
	err := p.Perform(ctx, p.facts, on(m, remediator.SetCertificates, time.Now().UTC().Format(time.RFC3339)))
	if !errors.Is(err, act.ErrPreconditionFailed) || !strings.Contains(err.Error(), "skip-remediation") {
		t.Errorf("%v, want ErrPreconditionFailed", err)
	}
	wantAnnotation(ctx, t, m, clusterv1.MachineCertificatesExpiryDateAnnotation, "")
	p.c.annotate(ctx, m, clusterv1.MachineSkipRemediationAnnotation, "")

	kcp := p.c.kcp(ctx)
	p.between = func() { p.c.annotate(ctx, kcp, clusterv1.PausedAnnotation, "yes") }
	err = p.Perform(ctx, p.facts, scale(m, remediator.AtOwner, 3, 5))
	if !errors.Is(err, act.ErrPreconditionFailed) || !strings.Contains(err.Error(), "is paused") {
		t.Errorf("%v, want ErrPreconditionFailed", err)
	}
	if n := fresh(ctx, t, kcp).Spec.Replicas; n == nil || *n != 3 {
		t.Errorf("replicas = %v, want 3", n)
	}
	p.c.annotate(ctx, kcp, clusterv1.PausedAnnotation, "")
}

// victim returns a machine in the middle, which the owner would not choose first by itself, and the UIDs of all
// machines.
func (p *performer) victim(ctx context.Context) (*clusterv1.Machine, map[types.UID]bool) {
	p.c.t.Helper()
	machines := p.c.machines(ctx, true)
	if len(machines) != 3 {
		p.c.t.Fatalf("%d machines", len(machines))
	}
	baseline := make(map[types.UID]bool, len(machines))
	for i := range machines {
		baseline[machines[i].UID] = true
	}
	return &machines[1], baseline
}

// newMachine waits for a machine that is not in the baseline. It fails the test if the victim is deleted before.
func (p *performer) newMachine(ctx context.Context, victim *clusterv1.Machine, baseline map[types.UID]bool) *clusterv1.Machine {
	p.c.t.Helper()
	var found *clusterv1.Machine
	harness.Await(ctx, p.c.t, "a new machine exists", func() string {
		deleted := false
		for _, m := range p.c.machines(ctx, true) { // both may have happened since the last poll
			if !baseline[m.UID] {
				found = &m
			}
			deleted = deleted || m.UID == victim.UID && !m.DeletionTimestamp.IsZero()
		}
		switch {
		case found != nil:
			return ""
		case deleted:
			p.c.t.Fatal("the victim is deleted before a new machine exists")
		}
		return "none"
	})
	return found
}

// replaced waits until the victim is deleted, the other machines of the baseline and the new machine exist, and the
// cluster is healthy. The new machine must have a node before the victim is deleted.
func (p *performer) replaced(ctx context.Context, victim, newMachine *clusterv1.Machine, baseline map[types.UID]bool) {
	p.c.t.Helper()
	joined := false
	harness.Await(ctx, p.c.t, "the victim is gone", func() string {
		there, deleted := false, false
		for _, m := range p.c.machines(ctx, true) {
			joined = joined || m.UID == newMachine.UID && m.Status.NodeRef.IsDefined()
			if m.UID == victim.UID {
				there, deleted = true, !m.DeletionTimestamp.IsZero()
			}
		}
		switch {
		case deleted && !joined:
			p.c.t.Fatal("the victim is deleted before the new machine has a node")
		case there:
			return "it is there"
		}
		return ""
	})
	p.settled(ctx, len(baseline), append(others(victim, baseline), newMachine.UID)...)
}

func others(victim *clusterv1.Machine, baseline map[types.UID]bool) []types.UID {
	var uids []types.UID
	for uid := range baseline {
		if uid != victim.UID {
			uids = append(uids, uid)
		}
	}
	return uids
}

// settled waits until the cluster is healthy and has count control plane machines, including these.
func (p *performer) settled(ctx context.Context, count int, uids ...types.UID) {
	p.c.t.Helper()
	harness.Await(ctx, p.c.t, "no machine is too many", func() string {
		if n := len(p.c.machines(ctx, true)); n != count {
			return fmt.Sprintf("%d machines", n)
		}
		return ""
	})
	harness.Must(p.c.t, shared.side.WaitAvailable(ctx, p.c.Namespace, p.c.Name))
	there := map[types.UID]bool{}
	for _, m := range p.c.machines(ctx, true) {
		there[m.UID] = true
	}
	for _, uid := range uids {
		if !there[uid] {
			p.c.t.Errorf("machine %s is lost; there are %s", uid, describe(p.c.machines(ctx, true)))
		}
	}
}

func describe(machines []clusterv1.Machine) string {
	var text []string
	for i := range machines {
		text = append(text, fmt.Sprintf("%s (%s) %v", machines[i].Name, machines[i].UID, machines[i].Annotations))
	}
	return strings.Join(text, ", ")
}

// rolloutSurge makes one machine outdated, and relies on the owner for the rest.
func (p *performer) rolloutSurge(ctx context.Context, lever remediator.ActionType, value string) {
	p.c.t.Helper()
	victim, baseline := p.victim(ctx)
	sampler := p.c.watchQuorum(p.c.t)
	p.do(ctx, on(victim, remediator.SetDelete, remediator.DeleteValue))
	p.do(ctx, on(victim, lever, value))
	started := time.Now()
	if lever == remediator.SetClonedFrom {
		p.do(ctx, on(victim, remediator.Touch, "now"))
	}
	newMachine := p.newMachine(ctx, victim, baseline)
	p.c.t.Logf("new machine after %s", time.Since(started).Round(10*time.Millisecond))
	p.do(ctx, on(victim, remediator.Touch, ""))
	p.replaced(ctx, victim, newMachine, baseline)
	p.c.t.Logf("replaced after %s", time.Since(started).Round(100*time.Millisecond))
	sampler.never(p.c.t, 3, 4)
}

// relaxedSurge tests a leader of etcd whose kubelet is down but whose etcd runs. The leadership is moved first, because
// the owner could not do it, and the owner's preflight is relaxed.
func relaxedSurge(ctx context.Context, t *testing.T, p *performer) {
	victim, baseline := p.victim(ctx)
	observer := p.c.watch(ctx)
	p.Etcd = observer
	defer func() { p.Etcd = nil }()
	node := victim.Status.NodeRef.Name
	harness.Must(t, p.c.Lead(ctx, node))
	harness.Must(t, p.c.StopKubelet(ctx, node))
	p.c.awaitCondition(ctx, victim.Name, controlplanev1.KubeadmControlPlaneMachineEtcdPodHealthyCondition, metav1.ConditionUnknown)
	sampler := p.c.watchQuorum(t)

	facts := observer.look(ctx, p.facts.Owner.Owner)
	p.facts.Machines = facts.Machines
	other := facts.Machines[0].Node
	if other == node {
		other = facts.Machines[1].Node
	}
	p.do(ctx, on(victim, remediator.MoveLeadership, other))
	members, err := shared.bed.Cloud().Etcd(ctx, p.c.Namespace+"/"+p.c.Name)
	harness.Must(t, err)
	for _, m := range members {
		if m.Leader != (m.Node == other) {
			t.Errorf("%s is the leader: %t, want %s", m.Node, m.Leader, other)
		}
	}
	p.do(ctx, on(victim, remediator.SetDelete, remediator.DeleteValue))
	p.do(ctx, on(victim, remediator.SetCertificates, time.Now().UTC().Format(time.RFC3339)))
	if err := p.Perform(ctx, p.facts, on(victim, remediator.SetRelaxed, relaxedFor(victim.Name))); err != nil { // once: the owner removes it
		t.Fatal(err)
	}
	started := time.Now()
	newMachine := p.newMachine(ctx, victim, baseline)
	p.do(ctx, on(victim, remediator.SetRelaxed, ""))
	p.replaced(ctx, victim, newMachine, baseline)
	t.Logf("replaced after %s", time.Since(started).Round(100*time.Millisecond))
	sampler.never(t, 3, 4)
}

// replicaSurge requests two more replicas, and the original number as soon as a new machine exists.
func (p *performer) replicaSurge(ctx context.Context, where remediator.Where) {
	p.c.t.Helper()
	victim, baseline := p.victim(ctx)
	sampler := p.c.watchQuorum(p.c.t)
	p.do(ctx, on(victim, remediator.SetDelete, remediator.DeleteValue))
	p.do(ctx, scale(victim, where, 3, 5))
	started := time.Now()
	newMachine := p.newMachine(ctx, victim, baseline)
	p.c.t.Logf("new machine after %s", time.Since(started).Round(10*time.Millisecond))
	p.refused(ctx, scale(victim, where, 5, 3), " was created after this decision")
	p.look(ctx)
	p.do(ctx, scale(victim, where, 5, 3))
	p.replaced(ctx, victim, newMachine, baseline)
	p.c.t.Logf("replaced after %s", time.Since(started).Round(100*time.Millisecond))
	sampler.never(p.c.t, 3, 4)
}

// cancelled checks a victim that recovers while its replacement, which never starts, exists. The new machine is
// annotated for deletion first, so that every surplus machine is annotated at all times. KubeadmControlPlane may create
// a second machine if its request for the first fails although the API server executed it. That machine is annotated
// too.
func cancelled(ctx context.Context, t *testing.T, p *performer) {
	victim, baseline := p.victim(ctx)
	sampler := p.c.watchQuorum(t)
	p.c.stall(ctx, true)
	p.do(ctx, on(victim, remediator.SetDelete, remediator.DeleteValue))
	p.do(ctx, on(victim, remediator.SetCertificates, time.Now().UTC().Format(time.RFC3339)))
	newMachine := p.newMachine(ctx, victim, baseline)
	p.c.stall(ctx, false)
	infra := p.c.infra(ctx, newMachine)
	p.markNew(ctx, baseline)
	p.do(ctx, on(victim, remediator.SetCertificates, ""))
	p.do(ctx, on(victim, remediator.SetDelete, ""))
	harness.Await(ctx, t, "the new machine is being deleted", func() string {
		p.markNew(ctx, baseline)
		if fresh(ctx, t, newMachine).DeletionTimestamp.IsZero() {
			return "it is not"
		}
		return ""
	})
	p.c.annotate(ctx, infra, clusterv1.PausedAnnotation, "")
	harness.Await(ctx, t, "all new machines are gone", func() string {
		return p.markNew(ctx, baseline)
	})
	p.settled(ctx, 3, append(others(victim, baseline), victim.UID)...)
	sampler.never(t, 3, 5)
}

// markNew annotates each machine that is not in the baseline for deletion, and returns the name of one, or "".
func (p *performer) markNew(ctx context.Context, baseline map[types.UID]bool) (left string) {
	p.c.t.Helper()
	for _, m := range p.c.machines(ctx, true) {
		if baseline[m.UID] {
			continue
		}
		left = m.Name
		if m.DeletionTimestamp.IsZero() && m.Annotations[clusterv1.DeleteMachineAnnotation] == "" {
			p.do(ctx, on(&m, remediator.SetDelete, remediator.DeleteValue))
		}
	}
	return left
}

// stall makes the cloud create no server for new machines.
func (c *cluster) stall(ctx context.Context, on bool) {
	c.t.Helper()
	template := &infrav1.DevMachineTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name + "-machine"}}
	value := map[bool]string{true: `"yes"`, false: "null"}[on]
	patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{%q:%s}}}}}`, clusterv1.PausedAnnotation, value)
	harness.Must(c.t, shared.admin.Patch(ctx, template, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// handsOver checks that the owner remediates a machine by deleting it first, and that a machine that is taken back is
// healthy for all controllers.
func handsOver(ctx context.Context, t *testing.T, p *performer) {
	victim, baseline := p.victim(ctx)
	kept := p.c.machines(ctx, true)[0]
	p.c.annotate(ctx, p.c.kcp(ctx), clusterv1.PausedAnnotation, "yes")
	p.refused(ctx, on(&kept, remediator.HandOver, ""), "paused")
	p.c.annotate(ctx, p.c.kcp(ctx), clusterv1.PausedAnnotation, "")

	patch := client.MergeFrom(kept.DeepCopy())
	kept.Status.Conditions = append(kept.Status.Conditions, metav1.Condition{
		Type: clusterv1.MachineExternallyRemediatedCondition, Status: metav1.ConditionFalse, Reason: "WaitingForRemediation", LastTransitionTime: metav1.Now(),
	})
	harness.Must(t, shared.admin.Status().Patch(ctx, &kept, patch))
	p.do(ctx, on(&kept, remediator.ClearConditions, ""))
	for condition, want := range map[string]string{
		clusterv1.MachineExternallyRemediatedCondition: "", clusterv1.MachineOwnerRemediatedCondition: "", clusterv1.MachineHealthCheckSucceededCondition: "True",
	} {
		if got := p.c.condition(ctx, kept.Name, condition); got != want {
			t.Errorf("%s after the machine was taken back = %q, want %q", condition, got, want)
		}
	}

	p.do(ctx, on(&kept, remediator.Report, ""))
	for condition, want := range map[string]string{clusterv1.MachineOwnerRemediatedCondition: "", clusterv1.MachineHealthCheckSucceededCondition: "False"} {
		if got := p.c.condition(ctx, kept.Name, condition); got != want {
			t.Errorf("%s after the machine was reported = %q, want %q", condition, got, want)
		}
	}
	p.do(ctx, on(&kept, remediator.ClearConditions, ""))
	if err := p.Perform(ctx, p.facts, on(victim, remediator.HandOver, "")); err != nil {
		t.Fatal(err)
	}
	started := time.Now()
	harness.Await(ctx, t, "the victim is being deleted", func() string {
		err := shared.admin.Get(ctx, client.ObjectKeyFromObject(victim), victim)
		if apierrors.IsNotFound(err) || err == nil && !victim.DeletionTimestamp.IsZero() {
			return ""
		}
		raw, err := json.Marshal(victim.Status.Conditions)
		return string(raw) + fmt.Sprint(err)
	})
	t.Logf("the owner deletes the machine after %s", time.Since(started).Round(10*time.Millisecond))
	newMachine := p.newMachineAfter(ctx, baseline)
	p.settled(ctx, 3, append(others(victim, baseline), newMachine)...)
}

// newMachineAfter waits for a machine that is not in the baseline.
func (p *performer) newMachineAfter(ctx context.Context, baseline map[types.UID]bool) (uid types.UID) {
	p.c.t.Helper()
	harness.Await(ctx, p.c.t, "a new machine exists", func() string {
		for _, m := range p.c.machines(ctx, true) {
			if !baseline[m.UID] {
				uid = m.UID
				return ""
			}
		}
		return "none"
	})
	return uid
}

// surgeWorkers adds a worker, waits until it is ready, annotates the victim for deletion, and restores the replicas.
func surgeWorkers(ctx context.Context, t *testing.T, c *cluster, where remediator.Where) {
	list := &clusterv1.MachineDeploymentList{}
	harness.Must(t, shared.admin.List(ctx, list, client.InNamespace(c.Namespace)))
	if len(list.Items) != 1 {
		t.Fatalf("%d MachineDeployments, want 1", len(list.Items))
	}
	p := c.perform(remediator.Deployment, &list.Items[0])
	p.with(t, func() {
		victim := c.machines(ctx, false)[0]
		sets := &clusterv1.MachineSetList{}
		harness.Must(t, shared.admin.List(ctx, sets, client.InNamespace(c.Namespace)))
		ofSet := c.perform(remediator.Set, &sets.Items[0])
		if err := ofSet.Perform(ctx, ofSet.facts, scale(&victim, remediator.AtOwner, 1, 2)); err == nil || !strings.Contains(err.Error(), "managed by MachineDeployment") {
			t.Errorf("scaling the MachineSet of a MachineDeployment = %v, want an error", err)
		}
		for _, a := range []remediator.Action{on(&victim, remediator.SetRelaxed, relaxedFor(victim.Name)), on(&victim, remediator.SetClonedFrom, "x"), on(&victim, remediator.MoveLeadership, "x")} {
			if err := p.Perform(ctx, p.facts, a); err == nil {
				t.Errorf("%s of a worker = nil, want an error", a.Type)
			}
		}
		p.do(ctx, scale(&victim, where, 1, 2))
		harness.Await(ctx, t, "there are two workers", func() string {
			if n := len(c.machines(ctx, false)); n != 2 {
				return fmt.Sprintf("%d", n)
			}
			return ""
		})
		harness.Must(t, shared.side.WaitAvailable(ctx, c.Namespace, c.Name))
		p.refused(ctx, scale(&victim, where, 2, 1), " was created after this decision")
		p.look(ctx)
		p.do(ctx, on(&victim, remediator.SetDelete, remediator.DeleteValue))
		p.do(ctx, scale(&victim, where, 2, 1))
		harness.Await(ctx, t, "the victim is gone", func() string {
			if err := shared.admin.Get(ctx, client.ObjectKeyFromObject(&victim), &clusterv1.Machine{}); !apierrors.IsNotFound(err) {
				return fmt.Sprint("it is there: ", err)
			}
			return ""
		})
		harness.Must(t, shared.side.WaitAvailable(ctx, c.Namespace, c.Name))
	})
}
