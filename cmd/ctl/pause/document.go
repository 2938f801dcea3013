package pause

import (
	"fmt"

	"scute.dev/aggregate"
	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/pause/request"
)

// Documents returns the Pause, unless it is not requested yet.
func (f *Fold) Documents(k *kit.Kit) []kit.Document {
	p := f.Pause()
	if p == nil {
		return nil
	}
	d := kit.Document{
		Kind: "pause", Namespace: p.Namespace, Name: p.Name, ID: f.id, Phase: string(p.Status.Phase), Message: p.Status.Message, Next: p.Status.Next,
		Progress: fmt.Sprintf("%d/%d objects", p.Status.Counts.Acknowledged, p.Status.Counts.Objects), Began: "since",
		Commands: Hints(k, p), Actions: Actions(f.id, p),
	}
	if p.Status.PhaseSince != nil {
		d.Since = p.Status.PhaseSince.Time
	}
	switch {
	case p.Status.FinishedAt != nil:
		d.End(p.Status.FinishedAt)
	case p.Status.Next != "":
		d.State = kit.Waiting
	}
	return []kit.Document{d}
}

// Hints returns the commands about a Pause, each with its effect.
func Hints(k *kit.Kit, p *v1alpha1.Pause) []string {
	describe := k.Hint(p.Namespace, "describe", "pause", p.Name)
	if p.Status.FinishedAt != nil {
		return []string{describe + " shows what happened"}
	}
	lines := []string{describe + " shows what it waits for"}
	lines = append(lines, k.Hint(p.Namespace, "watch", "pause", p.Name)+" follows it until every object has acknowledged")
	if p.Status.Phase == v1alpha1.PauseRestoring || p.Status.Phase == v1alpha1.PauseResuming {
		return lines
	}
	return append(lines, k.Hint(p.Namespace, "resume", "cluster", p.Name)+" deletes it, which restores the earlier pause state")
}

// Actions returns what users can do with a Pause now.
func Actions(id string, p *v1alpha1.Pause) []kit.Action {
	if p.Status.FinishedAt != nil || p.Status.Phase == v1alpha1.PauseRestoring || p.Status.Phase == v1alpha1.PauseResuming {
		return nil
	}
	return []kit.Action{{Do: "delete", Kind: "pause", Namespace: p.Namespace, Name: p.Name, ID: id}}
}

// Err returns why an event cannot be read.
func (f *Fold) Err() (err error) {
	f.view.Read(f.id, func(e *aggregate.Entry[*request.State]) {
		if e != nil {
			err = e.Err
		}
	})
	return err
}

// Object returns the Pause.
func (f *Fold) Object() (name string, object any) { return "pause", f.Pause() }

// Content returns the state of the pause.
func (f *Fold) Content() (state any) {
	f.WithState(func(s *request.State) { state = s })
	return state
}

// Describe returns the description of the Pause.
func (f *Fold) Describe(v kit.View) []string {
	if p := f.Pause(); p != nil {
		return Describe(v, p)
	}
	return nil
}
