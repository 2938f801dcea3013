package transfer

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/object"
	"scute.dev/mover"
)

// preflighted runs the preflight of a move of a cluster whose machine belongs to a MachineSet, and returns its errors
// by field. before changes the clusters, and begun returns the remediations of the log.
func preflighted(t *testing.T, before func(f *fakes, set object.Ref), begun func(set types.UID) []Remediation) (fields map[string]string, remedies string) {
	t.Helper()
	f := moved(t, mover.Claimed{Holder: "one"})
	set := capi("MachineSet", "a-workers")
	uid := f.src.put(set, obj{"metadata": obj{
		"labels":          obj{"cluster.x-k8s.io/cluster-name": "a"},
		"ownerReferences": []any{obj{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "a", "uid": string(f.src.get(f.cluster).GetUID())}},
	}})
	f.src.merge(f.cluster, obj{"metadata": obj{"annotations": nil}})
	for _, ref := range []object.Ref{f.cluster, f.machine} {
		f.dst.drop(ref)
	}
	if before != nil {
		before(f, set)
	}
	if begun != nil {
		f.transfer.Remediations = func(context.Context) ([]Remediation, error) { return begun(uid), nil }
	}
	o, err := f.transfer.Perform(t.Context(), f.state, mover.RunPreflight, nil)
	if err != nil {
		t.Fatal(err)
	}
	done, ok := o.(mover.PreflightDone)
	if !ok {
		t.Fatalf("outcome = %+v, want PreflightDone", o)
	}
	fields = make(map[string]string)
	for _, found := range done.Findings {
		if found.Severity == mover.Error {
			fields[found.Field] = found.Message
			remedies += found.Remedy + "\n"
		}
	}
	return fields, remedies
}

// TestARemediationOfTheLogIsRefused checks that a remediation in the log prevents a move of its owner, and of no other.
func TestARemediationOfTheLogIsRefused(t *testing.T) {
	if fields, _ := preflighted(t, nil, func(types.UID) []Remediation { return []Remediation{{Owner: "another", Machine: "b-1"}} }); len(fields) > 0 {
		t.Fatalf("refused for the remediation of another owner: %v", fields)
	}
	for name, c := range map[string]struct {
		said          Remediation
		message, next string
	}{
		"surging": {
			Remediation{ID: "fleet/a-workers/1234/a-1", Machine: "a-1", Message: "a-workers was asked for one more machine"},
			"machine a-1 is in progress (fleet/a-workers/1234/a-1): a-workers was asked", "`scutectl abort remediation a-1 -n fleet`",
		},
		"frozen":     {Remediation{Machine: "a-1", Next: "take the hook off"}, "machine a-1", "take the hook off"},
		"unreadable": {Remediation{Message: "stranded: event v9", Next: "run a newer version"}, "scute cannot determine whether a remediation of its machines is in progress: stranded: event v9", "run a newer version"},
	} {
		t.Run(name, func(t *testing.T) {
			fields, remedies := preflighted(t, nil, func(set types.UID) []Remediation {
				c.said.Owner = set
				return []Remediation{c.said}
			})
			if got := fields["MachineSet.cluster.x-k8s.io fleet/a-workers"]; len(fields) != 1 || !strings.Contains(got, c.message) || !strings.Contains(remedies, c.next) {
				t.Errorf("findings = %v, remedies %s", fields, remedies)
			}
		})
	}
}

// TestALogThatDoesNotAnswerIsAskedAgain checks that the preflight is retried if the remediations cannot be read.
func TestALogThatDoesNotAnswerIsAskedAgain(t *testing.T) {
	f := moved(t, mover.Claimed{Holder: "one"})
	f.src.merge(f.cluster, obj{"metadata": obj{"annotations": nil}})
	f.transfer.Remediations = func(context.Context) ([]Remediation, error) { return nil, errors.New("no answer") } //nolint:err113 // as a server says it
	if f.step(); mover.Next(f.state) != mover.RunPreflight || !strings.Contains(f.state.TransientFailure.Message, "reading remediations from the event log: no answer") {
		t.Errorf("phase = %s, failure %q", f.state.Phase, f.state.TransientFailure.Message)
	}
}

// TestMarksOfARemediationAreRefused checks that without a log, annotations and conditions of a remediation prevent the
// move.
func TestMarksOfARemediationAreRefused(t *testing.T) {
	annotate := func(key, value string) obj { return obj{"metadata": obj{"annotations": obj{key: value}}} }
	for name, c := range map[string]struct {
		change obj
		says   string
	}{
		"none":             {annotate("cluster.x-k8s.io/delete-machine", "somebody's"), ""},
		"chosen":           {annotate("cluster.x-k8s.io/delete-machine", "scute.dev"), "delete-machine"},
		"unhealthy":        {annotate("scute.dev/unhealthy", `{"state":"Unhealthy"}`), ""},
		"decided":          {annotate("scute.dev/unhealthy", `{"state":"Scheduled"}`), "Scheduled"},
		"handed over":      {obj{"status": obj{"conditions": []any{obj{"type": "OwnerRemediated", "status": "False"}}, "nodeRef": obj{"name": "n"}}}, "OwnerRemediated"},
		"by the owner":     {annotate("controlplane.cluster.x-k8s.io/remediation-in-progress", "{}"), "remediation-in-progress"},
		"no mark of scute": {annotate("scute.dev/unhealthy", `{`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			fields, remedies := preflighted(t, func(f *fakes, _ object.Ref) { f.src.merge(f.machine, c.change) }, nil)
			got := fields["Machine.cluster.x-k8s.io fleet/a-1"]
			if c.says == "" && len(fields) > 0 || c.says != "" && (!strings.Contains(got, c.says) || !strings.Contains(remedies, "then create another Move")) {
				t.Errorf("findings = %v, remedies %s", fields, remedies)
			}
		})
	}
}

// TestARemediationThatBeganMeanwhileIsRolledBack checks that a remediation that started after the preflight, and is not
// in this log, causes a rollback before the plan.
func TestARemediationThatBeganMeanwhileIsRolledBack(t *testing.T) {
	f := moved(t, mover.AllAcknowledged{})
	paused := obj{"status": obj{"conditions": []any{obj{"type": "Paused", "status": "True"}}}}
	f.src.merge(f.cluster, paused)
	f.src.merge(f.machine, paused)
	f.src.merge(f.machine, obj{"metadata": obj{"annotations": obj{"cluster.x-k8s.io/delete-machine": "scute.dev"}}})
	if f.step(); f.state.Phase != mover.PhaseRollingBack || !strings.Contains(f.state.RollbackCause, "a remediation began while the move paused the source") {
		t.Errorf("phase = %s, rollback cause %q, failure %q", f.state.Phase, f.state.RollbackCause, f.state.TransientFailure.Message)
	}
}
