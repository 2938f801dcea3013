package remediator

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// StepObjectName returns the name of the object that an escalation step creates for a machine. It
// depends only on the arguments, so that a later reconciliation finds the object.
func StepObjectName(machine, step string) string {
	const longest = 63
	name := "scute-" + machine + "-" + step
	if len(name) <= longest {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return name[:longest-9] + "-" + hex.EncodeToString(sum[:4])
}

// StepObject identifies the object that an escalation step of a policy creates for a machine.
type StepObject struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
}

// object returns the object of a step for a machine, or nil if the step's template names no kind.
func (step EscalationStep) object(machine string) *StepObject {
	if step.Kind == "" {
		return nil
	}
	return &StepObject{APIVersion: step.APIVersion, Kind: step.Kind, Name: StepObjectName(machine, step.Name)}
}

// CreatedObjects contains the objects that escalation steps created, by machine and step. A machine
// with a rollout trigger on its infrastructure machine has an entry, possibly without objects, so
// that the trigger is read even if nothing else is wrong with the machine.
type CreatedObjects map[types.UID]map[string]StepObject

// StepObjects returns the objects of escalation steps that the log records. They include objects of
// steps that the policy no longer has.
func StepObjects(s *State) CreatedObjects {
	all := make(CreatedObjects)
	for uid, u := range s.Unhealthy {
		if len(u.Objects) > 0 {
			all[uid] = maps.Clone(u.Objects)
		}
	}
	for _, a := range s.InProgress() {
		if uid := a.Victim.UID; a.Request.Trigger == TriggerClonedFrom && all[uid] == nil {
			all[uid] = nil
		}
	}
	return all
}

// steps returns the names of the policy's steps, all, and of the steps with an object in the log.
func (u *UnhealthyMachine) steps(all []EscalationStep) []string {
	var names []string
	for _, step := range all {
		names = append(names, step.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(u.Objects)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func (u *UnhealthyMachine) createdObject(step string) *StepObject {
	if object, ok := u.Objects[step]; ok {
		return &object
	}
	return nil
}

func (u *UnhealthyMachine) nextStep(steps []EscalationStep) *EscalationStep {
	return find(steps, func(step *EscalationStep) bool { return !slices.Contains(u.CompletedSteps, step.Name) })
}

func stepNamed(steps []EscalationStep, name string) *EscalationStep {
	return find(steps, func(step *EscalationStep) bool { return step.Name == name })
}

// endEscalations returns the events that end the escalation steps that have timed out, have failed,
// or were cancelled.
func endEscalations(s *State, f *Facts, now time.Time) []Event {
	var events []Event
	for _, u := range s.unhealthy() {
		m := f.machine(u.Subject)
		if u.EscalationStep == "" || m == nil || f.Policy.Unreadable != "" {
			continue
		}
		failed := m.FailedSteps[u.EscalationStep]
		ended := EscalationEnded{Machine: u.Subject, Step: u.EscalationStep, Reason: failed}
		switch {
		case failed != "":
			ended.Outcome = stepFailed
		case stepNamed(f.Policy.Escalation, u.EscalationStep) == nil || u.Aborted || m.Skip:
			ended.Outcome = stepCancelled
		case !now.Before(u.stepDeadline(f.Policy)):
			ended.Outcome = stepTimedOut
		default:
			continue
		}
		events = append(events, ended)
	}
	return events
}
