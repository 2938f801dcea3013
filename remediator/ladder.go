package remediator

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// RungName is the name of the object that an escalation step creates for a machine: the same each time, so that a
// second reconciliation finds it.
func RungName(machine, rung string) string {
	const longest = 63
	name := "scute-" + machine + "-" + rung
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
func (r Rung) object(machine string) *StepObject {
	if r.Kind == "" {
		return nil
	}
	return &StepObject{APIVersion: r.APIVersion, Kind: r.Kind, Name: RungName(machine, r.Name)}
}

// Made are the objects that escalation steps created, by machine and step.
type Made map[types.UID]map[string]StepObject

// StepObjects are those that the log knows. Objects of steps that the policy no longer has are found by this alone.
func StepObjects(s *State) Made {
	all := make(Made)
	for uid, p := range s.Patients {
		if len(p.Objects) > 0 {
			all[uid] = maps.Clone(p.Objects)
		}
	}
	return all
}

// steps are those of the policy, and those of which the log has an object.
func (p *Patient) steps(ladder []Rung) []string {
	var names []string
	for _, r := range ladder {
		names = append(names, r.Name)
	}
	if p != nil {
		for _, name := range slices.Sorted(maps.Keys(p.Objects)) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// made is the object of a step in the log, nil without.
func (p *Patient) made(step string) *StepObject {
	if p == nil {
		return nil
	}
	if object, ok := p.Objects[step]; ok {
		return &object
	}
	return nil
}

// nextRung is the next escalation step of a machine, if any.
func (p *Patient) nextRung(ladder []Rung) (Rung, bool) {
	for _, r := range ladder {
		if !slices.Contains(p.Climbed, r.Name) {
			return r, true
		}
	}
	return Rung{}, false
}

func rungNamed(ladder []Rung, name string) (Rung, bool) {
	i := slices.IndexFunc(ladder, func(r Rung) bool { return r.Name == name })
	if i < 0 {
		return Rung{}, false
	}
	return ladder[i], true
}
