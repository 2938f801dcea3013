package soak

import (
	"fmt"
	"slices"
	"strings"
)

// Presence is the state of a cluster on one side.
type Presence struct {
	Side   string
	Exists bool
	Paused bool
}

// Active reports whether the side's controllers reconcile the cluster.
func (p Presence) Active() bool { return p.Exists && !p.Paused }

// OneActive checks the third invariant: a cluster is never active on two sides. The presences are from two observations
// of all sides, the second after the first. A side counts only if the cluster was active both times, because an
// observation of all sides takes time.
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

// Somewhere checks the fourth invariant: each object of a cluster is on at least one side, also while the cluster is
// being moved. Each look has the names that were found on all sides together. A single look may miss an object that is
// being moved, because it reads one side after the other. Several looks do not.
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
