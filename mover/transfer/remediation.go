package transfer

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/object"
	"scute.dev/mover"
)

// Remediation is an unfinished remediation of a machine of the source, according to scute's event
// log.
type Remediation struct {
	ID string
	// Owner is the UID of the machine's owner: a control plane, a MachineDeployment or a
	// MachineSet.
	Owner types.UID
	// Machine is the name of the machine; empty if it is unknown.
	Machine string
	// Message describes the progress. Next, if set, is what a user can do.
	Message, Next string
}

// checkRemediations returns an error for each unfinished remediation of a machine that would move.
// The owner's replicas may be raised, or a machine annotated, and the target does not know the
// original values. The move cannot wait for the remediation, because that does not continue while
// its cluster is being moved.
func (p *scope) checkRemediations(ctx context.Context) (found findings, err error) {
	if p.Remediations == nil {
		return nil, nil
	}
	begun, err := p.Remediations(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading remediations from the event log: %w", err)
	}
	for _, m := range p.members.Objects {
		for _, r := range begun {
			if m.KeepReason == "" && m.UID == r.Owner {
				found.AddError(m.Ref.String(), r.description(), r.remedy(m.Ref.Namespace))
			}
		}
	}
	return found, nil
}

func (r Remediation) description() string {
	if r.Machine == "" {
		return "scute cannot determine whether a remediation of its machines is in progress: " + r.Message
	}
	return fmt.Sprintf("the remediation of machine %s is in progress (%s): %s", r.Machine, r.ID, r.Message)
}

func (r Remediation) remedy(namespace string) string {
	if r.Machine == "" {
		return r.Next
	}
	remedy := fmt.Sprintf("wait until it ends, or cancel it: `scutectl abort remediation %s -n %s`; then create another Move", r.Machine, namespace)
	if r.Next != "" {
		remedy += ". Next step of the remediation: " + r.Next
	}
	return remedy
}

// remediationText returns a description of the annotation or condition by which an object takes
// part in an unfinished remediation, or "". It detects remediations by other controllers, and
// remediations by scute even if its event log cannot be read.
func remediationText(m mover.Member) string {
	switch {
	case m.Remediating:
		return "its controller is remediating a machine: it has the annotation controlplane.cluster.x-k8s.io/remediation-in-progress"
	case m.Machine == nil:
		return ""
	case m.Machine.OwnerRemediated == object.False:
		return "its owner was asked to remediate it: its condition OwnerRemediated is False"
	case m.Machine.MarkedForDeletion:
		return "scute has chosen it for replacement: its annotation cluster.x-k8s.io/delete-machine is " + object.OwnDeleteMachineValue
	case m.Machine.ReplacementScheduled:
		return "scute has decided to replace it: its annotation scute.dev/unhealthy has the state Scheduled"
	default:
		return ""
	}
}

func (t *Transfer) remediationAdvice() string {
	return "wait until the replacement is complete, or cancel it (`scutectl get remediations -A` lists those of scute); " +
		"if the machine is no longer being replaced, remove the annotation or the condition; then " + t.retryAdvice()
}
