package page

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/remediation"
	runs "scute.dev/cmd/ctl/run"
	"scute.dev/eventlog"
	"scute.dev/mover"
)

// ended is the maximum number of ended objects in the list.
const ended = 12

// Thing is a run, a move, a Pause or a remediation in a list.
type Thing struct {
	Chip
	Kind, Name string
	Link       string
	Message    string
	Next       string
	Commands   []string
	Acts       []Act
	Word       string    // what happened at Since
	Since      time.Time // for ended objects: when they ended
	Progress   string
	seq        uint64
}

type nowPage struct {
	Waiting, Busy, Ended []Thing // Waiting and Busy are one page of each list
	OfWaiting, OfBusy    Pages
	MoreEnded            int
	Unreadable           []Thing
	Facts                []Fact
	Whole                bool
}

func (p nowPage) title() string {
	if n := p.OfWaiting.All; n > 0 {
		return fmt.Sprintf("(%d) Now", n)
	}
	return "Now"
}

// now builds the page of objects that wait for an operator, those in progress, and the ones that ended last.
func now(v *view) (any, error) {
	var p nowPage
	p.runs(v)
	p.moves(v)
	p.pauses(v)
	p.remediations(v)
	for a, err := range v.world.Unreadable() {
		p.Unreadable = append(p.Unreadable, Thing{Chip: chip("not readable"), Kind: string(a.Kind), Name: a.ID, Message: err.Error()})
	}
	newest := func(a, b Thing) int { return int(b.seq) - int(a.seq) } //nolint:gosec // sequences stay far below 2^63
	for _, list := range [][]Thing{p.Waiting, p.Busy} {
		slices.SortStableFunc(list, newest)
	}
	slices.SortStableFunc(p.Ended, func(a, b Thing) int { return cmp.Or(b.Since.Compare(a.Since), newest(a, b)) })
	var err error
	if p.Waiting, p.OfWaiting, err = paged(v, Long{Param: "waiting", Label: "Pages of what waits for you", Rows: listed}, p.Waiting); err != nil {
		return nil, err
	}
	if p.Busy, p.OfBusy, err = paged(v, Long{Param: "busy", Label: "Pages of what is in progress", Rows: listed}, p.Busy); err != nil {
		return nil, err
	}
	p.MoreEnded = max(0, len(p.Ended)-ended)
	p.Ended = p.Ended[:min(len(p.Ended), ended)]
	p.Facts, p.Whole, err = v.lastFacts(filter{}, factsShown)
	return p, err
}

func (p *nowPage) runs(v *view) {
	for id, r := range v.world.Runs() {
		t := Thing{
			Chip: chip(r.Phase()), Kind: "run", Name: r.Namespace + "/" + r.Name, Link: v.To("/run", "id", id), Message: r.Status.Message, Next: r.Status.Next,
			Word: "asked for", Since: r.CreatedAt, Progress: r.Status.Progress + " tasks", seq: v.world.Last(eventlog.Aggregate{Kind: eventlog.KindRun, ID: id}),
		}
		t.Acts = v.runActs(r)
		switch {
		case runs.Finished(r.Phase()):
			p.end(t, r.Status.FinishedAt)
		case runs.Rests(r.Phase()), r.Phase() == v1alpha1.RunPartiallyPaused:
			t.Commands = v.next(r)
			p.Waiting = append(p.Waiting, t)
		default:
			p.Busy = append(p.Busy, t)
		}
	}
}

// end adds an ended object. at is nil for a run that was transferred, because its end is not in this log.
func (p *nowPage) end(t Thing, at *metav1.Time) {
	if at != nil {
		t.Since = at.Time
	}
	p.Ended = append(p.Ended, t)
}

// commands returns lines on pages of the present, and nil on pages of the past, where a command has no use.
func (v *view) commands(lines []string) []string {
	if v.past || v.site.alone {
		return nil
	}
	return lines
}

func (p *nowPage) moves(v *view) {
	for id, m := range v.world.Moves() {
		r := m.Resource()
		t := Thing{
			Chip: chip(r.Status.Phase), Kind: "move", Name: r.Namespace + "/" + r.Name, Link: v.To("/move", "id", id), Message: r.Status.Message, Next: r.Status.Next,
			Word: "since", Since: m.State.PhaseSince, Progress: moved(r), seq: v.world.Last(eventlog.Aggregate{Kind: eventlog.KindMove, ID: id}),
		}
		t.Acts = v.moveActs(id, r)
		switch {
		case m.State.Finished():
			p.end(t, r.Status.FinishedAt)
		case r.Status.Stranded, r.Status.Phase == mover.PhaseFailed, r.Status.Phase == mover.PhaseStranded, m.State.TransientFailure != "":
			t.Commands = v.commands(moveCommands(v, r))
			p.Waiting = append(p.Waiting, t)
		default:
			p.Busy = append(p.Busy, t)
		}
	}
}

func moved(m *v1alpha1.Move) string {
	c := m.Status.Counts
	if c.ToDelete == 0 {
		return fmt.Sprintf("%d objects", c.Objects)
	}
	return fmt.Sprintf("%d/%d created, %d/%d deleted", c.Created, c.Objects, c.Deleted, c.ToDelete)
}

func (p *nowPage) pauses(v *view) {
	for id, f := range v.world.Pauses() {
		r := f.Pause()
		t := Thing{
			Chip: chip(r.Status.Phase), Kind: "pause", Name: r.Namespace + "/" + r.Name, Link: v.To("/pause", "id", id), Message: r.Status.Message, Next: r.Status.Next,
			Word: "since", Progress: fmt.Sprintf("%d/%d objects", r.Status.Counts.Acknowledged, r.Status.Counts.Objects), seq: v.world.Last(eventlog.Aggregate{Kind: eventlog.KindPause, ID: id}),
		}
		if r.Status.PhaseSince != nil {
			t.Since = r.Status.PhaseSince.Time
		}
		t.Acts = v.pauseActs(id, r)
		switch {
		case r.Status.FinishedAt != nil:
			p.end(t, r.Status.FinishedAt)
		case r.Status.Next != "":
			t.Commands = v.commands(pauseCommands(v, r))
			p.Waiting = append(p.Waiting, t)
		default:
			p.Busy = append(p.Busy, t)
		}
	}
}

func (p *nowPage) remediations(v *view) {
	for id, o := range v.world.Owners() {
		for _, r := range o.Items() {
			t := Thing{
				Chip: chip(r.Status.Phase), Kind: "machine", Name: r.Namespace + "/" + r.Name, Link: v.To("/owner", "id", id), Message: r.Status.Message, Next: r.Status.Next,
				Word: "marked", Since: r.CreationTimestamp.Time, Progress: r.Status.Decision, seq: v.world.Last(eventlog.Aggregate{Kind: eventlog.KindRemediation, ID: id}),
			}
			t.Acts = v.machineActs(r)
			switch {
			case !remediation.Open(r):
				p.end(t, r.Status.FinishedAt)
			case slices.Contains([]v1alpha1.RemediationPhase{v1alpha1.RemediationFrozen, v1alpha1.RemediationHeld, v1alpha1.RemediationFailed}, r.Status.Phase):
				t.Commands = v.commands(machineCommands(v, r))
				p.Waiting = append(p.Waiting, t)
			default:
				p.Busy = append(p.Busy, t)
			}
		}
	}
}

// machineCommands returns the commands for a remediation.
func machineCommands(v *view, r *v1alpha1.SurgeRemediation) []string {
	say := func(verb, what string) string {
		return v.command(r.Namespace, verb, "remediation", r.Name) + " " + what
	}
	lines := []string{say("describe", "shows what happened")}
	if r.Status.Phase == v1alpha1.RemediationHeld || r.Spec.Abort {
		return append(lines, say("release", "lets scute act again"))
	}
	if remediation.Open(r) {
		lines = append(lines, say("hold", "keeps the machine as it is"))
	}
	if remediation.UnderWay(r.Status.Phase) {
		lines = append(lines, say("abort", "takes back what has begun"))
	}
	return lines
}
