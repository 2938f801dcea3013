package remediator_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/object"
	"scute.dev/remediator"
)

// errForeign is returned when another client has changed the object.
var errForeign = errors.New("somebody else changed it")

// perform simulates an Executor: it reads the object and writes what is missing.
func (w *world) perform(f *remediator.Facts, a remediator.Action) error {
	if w.diesBeforeWrite {
		return errors.New("the process dies")
	}
	m := w.machine(a.Machine.Name)
	if m != nil && m.UID != a.Machine.UID {
		m = nil
	}
	switch a.Type {
	case remediator.SetRelaxed:
		return w.relax(a)
	case remediator.Touch:
		w.owner.Touched = a.Value
		return nil
	case remediator.Scale:
		return w.scale(f, a)
	case remediator.MoveLeadership:
		return w.moveLeadership(a)
	case remediator.Disarm:
		w.alarms = slices.DeleteFunc(w.alarms, func(alarm string) bool { return strings.HasPrefix(alarm, "NOSPACE") })
		return nil
	}
	if m == nil {
		return nil
	}
	switch a.Type {
	case remediator.SetUnhealthy:
		m.UnhealthyAnnotation = a.Value
	case remediator.SetNeeded:
		m.Needed = a.Value
	case remediator.SetDelete:
		if (a.Value != "" && m.DeleteAnnotation == "") || (a.Value == "" && m.DeleteAnnotation == remediator.DeleteValue) {
			m.DeleteAnnotation = a.Value
		}
	case remediator.SetCertificates:
		m.Certificates = a.Value
	case remediator.SetClonedFrom:
		m.ClonedFrom = a.Value
	case remediator.SkipDrain:
		m.SkipsDrain, m.Draining = true, time.Time{}
	case remediator.SkipDetach:
		m.SkipsDetach, m.Detaching = true, time.Time{}
	case remediator.HandOver:
		if c := m.Conditions["HealthCheckSucceeded"]; c.Status != object.False {
			w.set(m, "HealthCheckSucceeded", object.False, remediator.HandOverReason)
		}
		m.removeCondition("OwnerRemediated")
		w.set(m, "OwnerRemediated", object.False, "WaitingForRemediation")
	case remediator.Report:
		if c := m.Conditions["HealthCheckSucceeded"]; c.Status != object.False {
			w.set(m, "HealthCheckSucceeded", object.False, remediator.HandOverReason)
		}
	case remediator.Withdraw:
		if !m.Deleting {
			m.removeCondition("OwnerRemediated")
		}
	case remediator.ClearConditions:
		m.removeCondition("OwnerRemediated")
		m.removeCondition("ExternallyRemediated")
		w.set(m, "HealthCheckSucceeded", object.True, "HealthCheckSucceeded")
	case remediator.CreateStepObject, remediator.DeleteStepObject:
		m.StepObjects = slices.DeleteFunc(m.StepObjects, func(step string) bool { return step == a.Value })
		if a.Type == remediator.CreateStepObject {
			m.StepObjects = append(m.StepObjects, a.Value)
		}
	case remediator.CreateRequest:
		if m.Request == nil {
			m.Request = w.request(m)
		}
		if m.Request.OrdersCopied || a.Value == "" {
			return nil
		}
		var spec v1alpha1.SurgeRemediationSpec
		if err := json.Unmarshal([]byte(a.Value), &spec); err != nil {
			return err
		}
		m.Request.OrdersCopied = true
		m.Request.Abort = m.Request.Abort || spec.Abort
		if hold := spec.Hold; hold != nil && !m.Request.Hold {
			m.Request.Hold, m.Request.HoldUntil, m.Request.HoldReason = true, time.Time{}, hold.Reason
			if hold.Until != nil {
				m.Request.HoldUntil = hold.Until.Time
			}
		}
	case remediator.DeleteRequest:
		m.Request = nil
	case remediator.Defragment:
		if w.diesBeforeDefragment {
			return errors.New("the process dies")
		}
		w.maintenance.Attempted, w.maintenance.Err = a.Until, ""
		if err := w.defragment(m, a); err != nil {
			w.maintenance.Err = err.Error()
		}
	default:
		return fmt.Errorf("no such action: %s", a.Type)
	}
	return nil
}

// request returns a SurgeRemediation that is created now.
func (w *world) request(m *machine) *remediator.Request {
	return &remediator.Request{UID: types.UID("request-" + m.Name + "-" + w.now.Format("150405")), Created: w.now.Truncate(time.Second)}
}

func (w *world) relax(a remediator.Action) error {
	switch data, ok := remediation(w.owner.Relaxed); {
	case a.Value == "":
		if ok && data.Machine == a.Machine.Name {
			w.owner.Relaxed = ""
		}
	case w.owner.Relaxed != "" && (!ok || data.Machine != a.Machine.Name):
		return errForeign
	default:
		if _, ok := remediation(a.Value); !ok {
			return fmt.Errorf("the owner cannot read %q and stops working", a.Value)
		}
		w.owner.Relaxed = a.Value
	}
	return nil
}

// inProgress is the owner's own record of a remediation.
type inProgress struct {
	Machine    string    `json:"machine"`
	Timestamp  time.Time `json:"timestamp"`
	RetryCount int       `json:"retryCount"`
}

func remediation(value string) (data inProgress, ok bool) {
	err := json.Unmarshal([]byte(value), &data)
	return data, err == nil && data.Machine != ""
}

func (w *world) scale(f *remediator.Facts, a remediator.Action) error {
	replicas := w.replicas()
	if w.cluster.Topology != (a.Where == remediator.AtTopology) {
		return fmt.Errorf("replicas at the %s: the topology controller takes them back, and a healthy machine goes with them", a.Where)
	}
	switch {
	case *replicas == a.Replicas:
	case *replicas != a.Expect:
		return errForeign
	case a.Replicas < a.Expect && !w.factsComplete(f):
		return errForeign
	case w.stacked() && a.Replicas%2 == 0:
		return fmt.Errorf("%d replicas: cannot be an even number when etcd is stacked", a.Replicas)
	default:
		*replicas = a.Replicas
	}
	return nil
}

// defragment shrinks the database of a member, after moving leadership to another member if possible.
func (w *world) defragment(m *machine, a remediator.Action) error {
	switch voters, dead := w.voters(); {
	case !m.Member || !m.Etcd || dead > 0:
		return errors.New("a member does not answer")
	case m.Database.Size < a.Size:
		return nil
	case m.Leader && voters > 1:
		if a.NewLeader == "" || a.NewLeader == a.Value {
			return errors.New("it leads, and nobody takes over")
		}
		w.elect(a.NewLeader)
	}
	if w.defragmentHangs {
		m.Etcd = false
		return errors.New("it did not answer in time")
	}
	m.Database.Size = m.Database.InUse
	return nil
}

// factsComplete reports whether the facts include all machines.
func (w *world) factsComplete(f *remediator.Facts) bool {
	return !slices.ContainsFunc(w.machines, func(m *machine) bool {
		return !slices.ContainsFunc(f.Machines, func(seen remediator.Machine) bool { return seen.UID == m.UID })
	})
}

// moveLeadership moves leadership through the current leader, which may be unreachable.
func (w *world) moveLeadership(a remediator.Action) error {
	if m := w.machine(a.Machine.Name); m != nil && (m.EtcdUnreachable || w.onlyKubelets && !m.Kubelet) {
		return errors.New("the port cannot be forwarded")
	}
	w.elect(a.Value)
	return nil
}
