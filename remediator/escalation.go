package remediator

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// StepObjectName is the name of the object that an escalation step creates for a machine: the same each time, so that a
// second reconciliation finds it.
func StepObjectName(machine, step string) string {
	const longest = 63
	name := "scute-" + machine + "-" + step
	if len(name) <= longest {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return name[:longest-9] + "-" + hex.EncodeToString(sum[:4])
}

// StepObject names the object that is created for a machine by an escalation step of its policy.
type StepObject struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
}

// object of a step for a machine; nil where the step's template names no kind.
func (step EscalationStep) object(machine string) *StepObject {
	if step.Kind == "" {
		return nil
	}
	return &StepObject{APIVersion: step.APIVersion, Kind: step.Kind, Name: StepObjectName(machine, step.Name)}
}

// Made are the objects that escalation steps created, by machine and step. A machine whose rollout trigger is on its infrastructure machine
// is there too, with or without such objects: what was made must be found also when nothing else is wrong with the machine any more.
type Made map[types.UID]map[string]StepObject

// StepObjects are those that the log knows. Objects of steps that the policy no longer has are found by this alone.
func StepObjects(s *State) Made {
	all := make(Made)
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

// steps are those of the policy, and those of which the log has an object.
func (u *UnhealthyMachine) steps(all []EscalationStep) []string {
	var names []string
	for _, step := range all {
		names = append(names, step.Name)
	}
	if u != nil {
		for _, name := range slices.Sorted(maps.Keys(u.Objects)) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// made is the object of a step in the log, nil without.
func (u *UnhealthyMachine) made(step string) *StepObject {
	if u == nil {
		return nil
	}
	if object, ok := u.Objects[step]; ok {
		return &object
	}
	return nil
}

// nextStep returns the next escalation step of a machine, or nil.
func (u *UnhealthyMachine) nextStep(steps []EscalationStep) *EscalationStep {
	return find(steps, func(step *EscalationStep) bool { return !slices.Contains(u.CompletedSteps, step.Name) })
}

func stepNamed(steps []EscalationStep, name string) *EscalationStep {
	return find(steps, func(step *EscalationStep) bool { return step.Name == name })
}
