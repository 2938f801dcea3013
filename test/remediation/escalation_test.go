package remediation

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"scute.dev/api/v1alpha1"
	"scute.dev/remediator"
	"scute.dev/test/assets"
	"scute.dev/test/harness"
	"scute.dev/test/testbed"
)

// documented returns the escalation of an example in the documentation.
func documented(t *testing.T, example string) []v1alpha1.EscalationStep {
	t.Helper()
	root, err := assets.Root()
	harness.Must(t, err)
	text, err := os.ReadFile(filepath.Join(root, "docs", "examples", "repair", example+".yaml"))
	harness.Must(t, err)
	p := &v1alpha1.RepairPolicy{}
	harness.Must(t, yaml.UnmarshalStrict(text, p))
	return p.Spec.Escalation
}

// step waits for the object of the escalation's only step.
func (w *ward) step(ctx context.Context, t *testing.T) *unstructured.Unstructured {
	t.Helper()
	step := w.policy.Spec.Escalation[0]
	template := &unstructured.Unstructured{}
	harness.Must(t, template.UnmarshalJSON(step.Template.Raw))
	made := &unstructured.Unstructured{}
	made.SetGroupVersionKind(template.GroupVersionKind())
	key := client.ObjectKey{Namespace: w.Namespace, Name: remediator.StepObjectName(w.victim.Name, step.Name)}
	harness.Await(ctx, t, "the object of step "+step.Name+" exists", func() string {
		err := shared.admin.Get(ctx, key, made)
		harness.Must(t, client.IgnoreNotFound(err))
		if err != nil {
			phase, message := w.diary.now(w.victim.Name)
			return fmt.Sprintf("%s: %s", phase, message)
		}
		return ""
	})
	if refs := made.GetOwnerReferences(); len(refs) != 1 || refs[0].Kind != "Machine" || refs[0].UID != w.victim.UID {
		t.Errorf("owners of %s = %+v, want the Machine", made.GetName(), refs)
	}
	return made
}

// says writes the object's status, as its controller does.
func says(ctx context.Context, t *testing.T, o *unstructured.Unstructured, status map[string]any) {
	t.Helper()
	before := o.DeepCopy()
	o.Object["status"] = status
	harness.Must(t, shared.admin.Status().Patch(ctx, o, client.MergeFrom(before)))
}

// metal3 checks an escalation with a Metal3Remediation: it power-cycles the host, and the machine is healthy again. Its
// controller keeps the object with a finalizer until the Node is back.
func metal3(ctx context.Context, t *testing.T) {
	w := newWard(ctx, t, testbed.Cluster{}, func(s *v1alpha1.RepairPolicySpec) { s.Escalation = documented(t, "metal3") })
	harness.Must(t, kubeletDead(ctx, w.cluster, w.victim))
	made := w.step(ctx, t)
	if kind, _, err := unstructured.NestedString(made.Object, "spec", "strategy", "type"); err != nil || kind != "Reboot" {
		t.Errorf("strategy = %q, %v, want Reboot", kind, err)
	}
	const finalizer = "metal3remediation.infrastructure.cluster.x-k8s.io"
	before := made.DeepCopy()
	made.SetFinalizers([]string{finalizer})
	harness.Must(t, shared.admin.Patch(ctx, made, client.MergeFrom(before)))
	for _, phase := range []string{"Running", "Waiting"} {
		says(ctx, t, made, map[string]any{"phase": phase, "lastRemediated": metav1.Now().UTC().Format("2006-01-02T15:04:05Z")})
	}
	w.phase(ctx, t, v1alpha1.RemediationEscalating, "reboot")
	harness.Must(t, wellAgain(ctx, w.cluster, w.victim))
	harness.Await(ctx, t, "the object is deleted", func() string {
		harness.Must(t, shared.admin.Get(ctx, client.ObjectKeyFromObject(made), made))
		if made.GetDeletionTimestamp() == nil {
			return "it is there"
		}
		return ""
	})
	before = made.DeepCopy()
	made.SetFinalizers(nil)
	harness.Must(t, shared.admin.Patch(ctx, made, client.MergeFrom(before)))
	w.stays(ctx, t)
	w.healed(ctx, t)
	w.olderKept(ctx, t)
}

// tinkerbell checks that the replacement follows immediately when a Job of the machine's BMC fails, before the step's
// timeout.
func tinkerbell(ctx context.Context, t *testing.T) {
	w := newWard(ctx, t, testbed.Cluster{CertificateExpiryDays: 30}, func(s *v1alpha1.RepairPolicySpec) {
		s.Escalation = documented(t, "tinkerbell")
		raw := s.Escalation[0].Template.Raw // the machines of this cloud have no hardware
		s.Escalation[0].Template.Raw = []byte(strings.ReplaceAll(string(raw), "infrastructure.spec.hardwareName", "infrastructure.metadata.name"))
	})
	harness.Must(t, notReady(ctx, w.cluster, w.victim))
	made := w.step(ctx, t)
	ref, _, err := unstructured.NestedStringMap(made.Object, "spec", "machineRef")
	if err != nil || ref["name"] != w.victim.Spec.InfrastructureRef.Name || ref["namespace"] != w.Namespace {
		t.Errorf("machineRef = %v, %v, want the infrastructure machine", ref, err)
	}
	running := map[string]any{"type": "Running", "status": "True"}
	says(ctx, t, made, map[string]any{"conditions": []any{running}})
	w.phase(ctx, t, v1alpha1.RemediationEscalating, "power-cycle")
	says(ctx, t, made, map[string]any{"conditions": []any{running, map[string]any{"type": "Failed", "status": "True", "message": "task failed"}}})
	w.replaced(ctx, t, w.before, []clusterv1.Machine{*w.victim})
	w.healed(ctx, t)
	w.quorum.never(t, 3, 4)
	harness.Await(ctx, t, "the object of the step is gone", func() string {
		if err := shared.admin.Get(ctx, client.ObjectKeyFromObject(made), made); client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Sprint("it is there: ", err)
		}
		return ""
	})
}
