package request

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
	"scute.dev/pause"
	"scute.dev/view"
)

// Limits of the lists in a status.
const (
	statusClusters = 100
	statusKinds    = 100
	statusWaiting  = 20
)

// Status returns the status of a pause for its resource.
func Status(s *State) v1alpha1.PauseStatus {
	out := v1alpha1.PauseStatus{
		Phase: s.Phase, StartedAt: v1alpha1.StatusTime(s.StartedAt), PhaseSince: v1alpha1.StatusTime(s.PhaseSince), FinishedAt: v1alpha1.StatusTime(s.FinishedAt),
		Counts: v1alpha1.PauseCounts{
			Clusters: len(s.Roots), Objects: len(s.Acks) + s.Pending.Total, Acknowledged: len(s.Acks), Pending: s.Pending.Total, StillPaused: s.StillPausedTotal,
		},
		Clusters: clusters(s), Kinds: kinds(s),
	}
	out.WaitingFor = waitingList(s.Pending.Objects)
	if s.Releasing {
		out.WaitingFor, out.Unacknowledged = waitingList(s.StillPaused), waitingList(s.Pending.Objects)
	}
	out.Message, out.Next = Explain(s)
	return out
}

func waitingList(list []pause.PendingObject) (out []v1alpha1.PauseWaiting) {
	for _, w := range list[:min(len(list), statusWaiting)] {
		out = append(out, v1alpha1.PauseWaiting{Object: w.Ref.String(), Message: w.Reason})
	}
	return out
}

func clusters(s *State) (list []v1alpha1.PauseCluster) {
	acked := make(map[string]int)
	for _, ack := range s.Acks {
		acked[ack.Cluster]++
	}
	for _, root := range s.Roots[:min(len(s.Roots), statusClusters)] {
		name := root.Ref.Name
		list = append(list, v1alpha1.PauseCluster{
			Name: name, FoundPaused: root.Found, Paused: s.Set[root.Ref] && s.RestoredAt.IsZero(),
			Objects: acked[name] + s.Pending.Clusters[name], Acknowledged: acked[name], Pending: s.Pending.Clusters[name],
		})
	}
	return list
}

func kinds(s *State) []v1alpha1.PauseKind {
	by := make(map[string]*v1alpha1.PauseKind)
	kind := func(name string) *v1alpha1.PauseKind {
		if by[name] == nil {
			by[name] = &v1alpha1.PauseKind{Kind: name}
		}
		return by[name]
	}
	for ref, ack := range s.Acks {
		k := kind(ref.GroupKind())
		k.Acknowledged++
		k.BlockMove = k.BlockMove || ack.BlockMove
		if !slices.Contains(k.Signals, string(ack.How)) {
			k.Signals = append(k.Signals, string(ack.How))
			slices.Sort(k.Signals)
		}
		if after := time.Duration(ack.After); k.Slowest == nil || after > k.Slowest.Duration {
			k.Slowest = &metav1.Duration{Duration: after}
		}
	}
	for name, pending := range s.Pending.Kinds {
		kind(name).Pending = pending
	}
	var list []v1alpha1.PauseKind
	for _, name := range slices.Sorted(maps.Keys(by)) {
		if len(list) < statusKinds {
			list = append(list, *by[name])
		}
	}
	return list
}

// Explain returns a sentence about the current state, and what a user can do about it, if anything.
func Explain(s *State) (message, next string) {
	objects := fmt.Sprintf("%d of %d objects have acknowledged the pause", len(s.Acks), len(s.Acks)+s.Pending.Total)
	switch s.Phase {
	case v1alpha1.PausePending:
		message = "waiting for a daemon to start the pause"
	case v1alpha1.PausePausing:
		message = fmt.Sprintf("pausing %s", view.Count(len(s.Roots), "cluster"))
		if len(s.Roots) == 0 {
			message = "no selected Cluster exists yet; each is paused as soon as it exists"
		}
		message += waitingMessage(s)
	case v1alpha1.PauseAcknowledging:
		message = objects + waitingMessage(s)
	case v1alpha1.PauseAcknowledged:
		message = fmt.Sprintf("every object has acknowledged the pause: %s of %s", view.Count(len(s.Acks), "object"), view.Count(len(s.Roots), "cluster"))
	case v1alpha1.PauseTimedOut:
		message = fmt.Sprintf("not every object acknowledged the pause in time: %s; waiting for %s", objects, pendingNames(s))
		next = "check that the controllers of these objects run and may write their status, until the objects acknowledge the pause; or delete the " +
			"Pause to end it without them"
	case v1alpha1.PauseRestoring:
		message = "restoring the recorded pause states"
		if s.Release != "" {
			message += ": " + s.Release
		}
	case v1alpha1.PauseResuming:
		message = "the clusters are restored; waiting until " + formatTime(s.ResumeBy()) + " for every object to resume"
		if s.StillPausedTotal > 0 {
			message += fmt.Sprintf(": %d still report that they are paused", s.StillPausedTotal)
		}
	case v1alpha1.PauseReleased:
		message = "the clusters are restored; every object has resumed, or is paused for another reason"
		if s.StillPausedTotal > 0 {
			message = fmt.Sprintf("the clusters are restored; %s still reported Paused=True after %s", view.Count(s.StillPausedTotal, "object"),
				view.Duration(time.Duration(s.Spec.Resume)))
			next = "check that the controllers of these objects run"
		}
	}
	if s.Releasing && s.Pending.Total > 0 {
		message += fmt.Sprintf("; the pause ended after %d of %d objects had acknowledged it; these had not: %s", len(s.Acks), len(s.Acks)+s.Pending.Total,
			pendingNames(s))
	}
	if s.TransientFailure.Message != "" {
		return message + ": " + s.TransientFailure.Message, s.TransientFailure.Next
	}
	return message, next
}

func waitingMessage(s *State) string {
	if s.Pending.Total == 0 {
		return ""
	}
	until := ""
	if by := s.timesOutAt(); !by.IsZero() && !s.Late {
		until = " until " + formatTime(by)
	}
	return "; waiting" + until + " for " + pendingNames(s)
}

func (s *State) timesOutAt() (first time.Time) {
	for kind := range s.Pending.Kinds {
		if by := s.AcknowledgeBy(kind); first.IsZero() || by.Before(first) {
			first = by
		}
	}
	return first
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func pendingNames(s *State) string {
	const first = 3
	var names []string
	for _, w := range s.Pending.Objects[:min(len(s.Pending.Objects), first)] {
		names = append(names, w.Ref.Short()+" ("+w.Reason+")")
	}
	if more := s.Pending.Total - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}
