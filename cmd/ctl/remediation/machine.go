package remediation

import (
	"cmp"
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/api/v1alpha1"
	"scute.dev/remediator"
)

type machine struct {
	Namespace string `json:"namespace"`
	Cluster   string `json:"cluster"`
	// Owner is the kind and name of the object that replaces the machine.
	Owner string `json:"owner,omitempty"`
	Name  string `json:"name"`
	// Health is Failing, Unhealthy, Deleting, Deleted, or else the phase of the Machine.
	Health string `json:"health"`
	// Since and Reason are when and why the machine became unhealthy.
	Since  time.Time `json:"since,omitzero"`
	Reason string    `json:"reason,omitempty"`
	// Marks are annotations that pause the machine, or that request or prevent its remediation or
	// deletion. They also include what stops its remediation.
	Marks       []string            `json:"marks,omitempty"`
	Remediation *machineRemediation `json:"remediation"`

	controlPlane bool
	named        bool // the user named it
}

// machineRemediation is the remediation of a machine, read from the log or from a SurgeRemediation.
type machineRemediation struct {
	Phase       v1alpha1.RemediationPhase `json:"phase"`
	Decision    string                    `json:"decision,omitempty"`
	Message     string                    `json:"message,omitempty"`
	Next        string                    `json:"next,omitempty"`
	Replacement string                    `json:"replacement,omitempty"`
	Attempts    int                       `json:"attempts,omitempty"`
	// Outlook is what happens next. It is nil if the log was not read.
	Outlook *remediator.Outlook `json:"outlook,omitempty"`
}

// Values of Health.
const (
	running   = string(clusterv1.MachinePhaseRunning)
	failing   = string(remediator.Failing)
	unhealthy = "Unhealthy"
	deleting  = "Deleting"
	deleted   = "Deleted"
)

// setHealth sets the health of a machine. It uses mark if that is not nil, otherwise the result of
// a MachineHealthCheck, otherwise the phase of the Machine.
func (m *machine) setHealth(o *clusterv1.Machine, mark *v1alpha1.UnhealthyMark) {
	m.Health = cmp.Or(o.Status.Phase, "Pending")
	check := meta.FindStatusCondition(o.Status.Conditions, clusterv1.MachineHealthCheckSucceededCondition)
	switch {
	case mark != nil:
		m.Health, m.Reason, m.Since = unhealthy, mark.Reason, mark.Since.Time
		if mark.State == failing {
			m.Health = failing
		}
		if mark.Source != "" {
			m.Reason += ", reported by " + mark.Source
		}
	case check != nil && check.Status == metav1.ConditionFalse:
		m.Health, m.Reason, m.Since = unhealthy, cmp.Or(check.Message, "a MachineHealthCheck reports it unhealthy"), check.LastTransitionTime.Time
	}
	if o.DeletionTimestamp != nil {
		m.Health = deleting
	}
}

// setMarks sets the marks of a machine, in the words of the documentation.
func (m *machine) setMarks(o *clusterv1.Machine) {
	add := func(is bool, name string) {
		if is {
			m.Marks = append(m.Marks, name)
		}
	}
	for _, a := range [][2]string{
		{clusterv1.PausedAnnotation, "paused"},
		{clusterv1.MachineSkipRemediationAnnotation, "skip"},
		{clusterv1.RemediateMachineAnnotation, "remediate"},
		{clusterv1.DeleteMachineAnnotation, "delete"},
	} {
		_, there := o.Annotations[a[0]]
		add(there, a[1])
	}
	if r := m.Remediation; r != nil && r.Outlook != nil {
		add(r.Outlook.Held, "held")
		add(r.Outlook.Aborted, "aborted")
		add(r.Outlook.Frozen, "frozen")
	}
}

// decodeMark decodes the annotation of an unhealthy machine. If the annotation is invalid, the
// reason of the result says so.
func decodeMark(value string) *v1alpha1.UnhealthyMark {
	if value == "" {
		return nil
	}
	var out v1alpha1.UnhealthyMark
	if err := json.Unmarshal([]byte(value), &out); err != nil {
		return &v1alpha1.UnhealthyMark{State: "not readable", Reason: "annotation " + v1alpha1.UnhealthyAnnotation + " is not what scute writes"}
	}
	return &out
}
