package mover

import "slices"

// abandonedNext is what is left to a human when a target was given up that has objects the source has not.
const abandonedNext = "the source stays paused: what it still has is not all there was. If the target comes back, resume the clusters there; " +
	"else restore them from a backup. Then remove the annotations scute.dev/* from what is left at the source"

// decideRebuilt turns what both clusters show into the facts of a move. The last of them counts: a death before it has the
// clusters read again.
func (s *State) decideRebuilt(o WorldRead) ([]Event, error) {
	hash, err := PlanHash(o.Items)
	if err != nil {
		return nil, err
	}
	var events []Event
	if s.TargetID == "" {
		events = append(events, PreflightPassed{Clusters: o.Clusters, Target: o.Target})
	}
	if len(o.Roots) == 0 {
		events = append(events, PauseIntended{})
	}
	events = append(events, pauseIntended(o.Roots)...)
	first := true
	for part := range slices.Chunk(o.Items, perEvent) {
		events = append(events, PlanDrafted{First: first, Items: part})
		first = false
	}
	events = append(events, Planned{Hash: hash})
	for part := range parts(o.Created) {
		events = append(events, Created{Objects: part})
	}
	return append(events, Rebuilt{Way: s.Way}), nil
}

// Outlived ends a move whose end the log does not know, because it went back behind it. how is what the resource says of it.
func Outlived(how string) Abandoned {
	return Abandoned{Why: "the event log went back to before the end of the move, which was " + how, Next: lookThere}
}
