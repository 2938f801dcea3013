package doctor

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/object"
	"scute.dev/pause"
)

// answer describes how the objects of a kind reacted when their cluster was paused.
type answer string

const (
	// notAsked means that the cluster was not paused.
	notAsked     answer = "not asked"
	acknowledged answer = "acknowledged"
	// noSignal means that the objects have no means of acknowledging a pause, so scute must assume
	// that they are paused.
	noSignal answer = "no signal"
	// notNeeded means that no controller acts on the objects.
	notNeeded answer = "none needed"
	// notAcknowledged means that an object did not acknowledge in time.
	notAcknowledged answer = "never"
)

type providerKind struct {
	// Kind is the kind in the form Kind.group.
	Kind    string `json:"kind"`
	Objects int    `json:"objects"`
	// Conditions is the number of objects with the condition Paused.
	Conditions int    `json:"conditions"`
	Answer     answer `json:"answer"`
	// Acknowledged and Pending count the objects that did and did not acknowledge in time.
	Acknowledged int      `json:"acknowledged"`
	Pending      int      `json:"pending,omitempty"`
	Signals      []string `json:"signals,omitempty"`
	// SlowestSeconds is the time from the pause to the last acknowledgement.
	SlowestSeconds *float64 `json:"slowestSeconds,omitempty"`
	// StillPaused counts the objects that still report Paused after the Pause was deleted.
	StillPaused int `json:"stillPaused,omitempty"`
	// Passed is the verdict. If it is false, Reason is the reason, and Remedy is what a user can do.
	Passed bool   `json:"passed"`
	Reason string `json:"reason,omitempty"`
	Remedy string `json:"remedy,omitempty"`
}

const (
	remedySilent      = "set condition Paused in the controller (docs/providers.md); if no controller acts on the kind, name it with --ignore"
	remedyNever       = "check that its controller runs, watches the Cluster's spec.paused, and may write the status"
	remedyBlock       = "its controller blocks the pause with annotation " + object.BlockMoveAnnotation + ": find out what it still has to stop"
	remedyStillPaused = "make the controller watch the Cluster's spec.paused, and set condition Paused to False when the pause ends"
)

func survey(below []pause.Subject) []providerKind {
	by := make(map[string]*providerKind)
	for _, o := range below {
		name := o.Ref.GroupKind()
		if by[name] == nil {
			by[name] = &providerKind{Kind: name, Answer: notAsked}
		}
		by[name].Objects++
		if o.Paused != object.Absent {
			by[name].Conditions++
		}
	}
	list := make([]providerKind, 0, len(by))
	for _, name := range slices.Sorted(maps.Keys(by)) {
		list = append(list, *by[name])
	}
	slices.SortStableFunc(list, func(a, b providerKind) int { return cmp.Compare(group(a.Kind), group(b.Kind)) })
	return list
}

// judge sets the verdicts from the Pause's last status. ignored are kinds without a controller.
func judge(kinds []providerKind, status v1alpha1.PauseStatus, ignored []string) []providerKind {
	out := slices.Clone(kinds)
	for i := range out {
		k := &out[i]
		for _, s := range status.Kinds {
			if s.Kind == k.Kind {
				k.recordAnswer(s)
			}
		}
		switch {
		case k.Pending > 0:
			k.Answer, k.Reason, k.Remedy = notAcknowledged, describePending(k.Kind, status), remedyNever
			if strings.Contains(k.Reason, object.BlockMoveAnnotation) {
				k.Remedy = remedyBlock
			}
		case k.Acknowledged == 0:
			k.Answer, k.Reason, k.Remedy = notAcknowledged, "its objects were not checked, or were deleted during the check", "make sure that nothing else changes the cluster, and check again"
		case !slices.Equal(k.Signals, []string{string(pause.Assumed)}):
			k.Answer, k.Passed = acknowledged, true
		case !hasController(k.Kind) || slices.Contains(ignored, k.Kind):
			k.Answer, k.Passed = notNeeded, true
		default:
			k.Answer, k.Reason, k.Remedy = noSignal, "it has no condition Paused: a pause or a move counts it as acknowledged at once, whatever its controller does", remedySilent
		}
	}
	return out
}

func (k *providerKind) recordAnswer(s v1alpha1.PauseKind) {
	k.Acknowledged, k.Pending, k.Signals = s.Acknowledged, s.Pending, slices.Clone(s.Signals)
	if s.BlockMove {
		k.Signals = append([]string{"block-move"}, k.Signals...)
	}
	if s.Slowest != nil && s.Acknowledged > 0 {
		seconds := s.Slowest.Round(time.Millisecond).Seconds()
		k.SlowestSeconds = &seconds
	}
}

func describePending(kind string, status v1alpha1.PauseStatus) string {
	for _, w := range status.WaitingFor {
		if strings.HasPrefix(w.Object, kind+" ") {
			return strings.TrimPrefix(w.Object, kind+" ") + ": " + w.Message
		}
	}
	return "an object did not acknowledge in time"
}

// checkResumed fails the kinds that still report Paused after the Pause was deleted.
func checkResumed(kinds []providerKind, below []pause.Subject) []providerKind {
	out := slices.Clone(kinds)
	users := pause.PausedClustersOf(below)
	first := make(map[string]string)
	for i := range out {
		k := &out[i]
		for _, o := range below {
			if o.Ref.GroupKind() == k.Kind && o.Paused == object.True && !users.IsPaused(o) {
				k.StillPaused++
				first[k.Kind] = cmp.Or(first[k.Kind], o.Ref.Namespace+"/"+o.Ref.Name)
			}
		}
		if k.StillPaused > 0 && k.Passed {
			k.Passed, k.Reason, k.Remedy = false, first[k.Kind]+" still has condition Paused=True after the pause", remedyStillPaused
		}
	}
	return out
}

// hasController reports whether a provider's controller acts on a kind: it is neither a template
// nor a kind of Cluster API itself.
func hasController(kind string) bool {
	name, _, _ := strings.Cut(kind, ".")
	switch group(kind) {
	case object.CoreGroup, object.AddonsGroup, "ipam." + object.CoreGroup, "runtime." + object.CoreGroup:
		return false
	}
	return !strings.HasSuffix(name, "Template")
}

func group(kind string) string {
	_, group, _ := strings.Cut(kind, ".")
	return group
}
