package soak

import (
	"fmt"
	"slices"
	"strings"
)

// Presence of a cluster on one side.
type Presence struct {
	Side   string
	Exists bool
	Paused bool
}

// Active says whether the side's controllers act for the cluster.
func (p Presence) Active() bool { return p.Exists && !p.Paused }

// OneActive is the third invariant: at no time do two sides act for a cluster. The presences are those of two looks at
// all sides, the second after the first: a side counts only if it was active both times, for the looks take time.
func OneActive(cluster string, first, second []Presence) error {
	var active []string
	for i := range first {
		if first[i].Active() && second[i].Active() {
			active = append(active, first[i].Side)
		}
	}
	if len(active) > 1 {
		return fmt.Errorf("active: %s is active on %s at once", cluster, strings.Join(active, " and "))
	}
	return nil
}

// Somewhere is the fourth invariant: what belongs to a cluster is on one side at least, while the cluster is moved too.
// Each look has the names found on all sides together. An object on its way may be overlooked by a look at one side and
// then the other; by as many looks as there are given, it cannot.
func Somewhere(cluster string, objects []string, looks ...map[string]bool) error {
	var lost []string
	for _, name := range objects {
		if !slices.ContainsFunc(looks, func(found map[string]bool) bool { return found[name] }) {
			lost = append(lost, name)
		}
	}
	if len(lost) > 0 && len(looks) > 0 {
		return fmt.Errorf("lost: of %s on no side: %s", cluster, strings.Join(lost, ", "))
	}
	return nil
}
