package remediator

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
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
