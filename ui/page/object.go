package page

import (
	"fmt"
	"slices"

	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
	"scute.dev/ui/feed"
)

const maxRows = 100

// objectContent is the content of the page of an object whose kind has no page of its own.
type objectContent struct {
	Document kit.Document
	subject
	Chip   chip
	Fields []kit.Field
	Stages []stage
	Counts []kit.Count
	Tables []table
	Log    string // the aggregate
	// Cluster is the cluster whose objects are shown; "" means all.
	Cluster string
}

type stage struct {
	chip
	// Return is true for the last phase before the point of no return.
	Return bool
}

// table is shortened to maxRows. More is the number of omitted rows.
type table struct {
	kit.Table
	All, More int
}

func objectOf(v *view) (any, error) {
	a := v.aggregate()
	f, err := feed.Find[feed.Fold](v.Snapshot, a.Kind, a.ID)
	if err != nil {
		return nil, err
	}
	documents := f.Documents(v.site.kit)
	if len(documents) == 0 {
		return nil, fmt.Errorf("%w: %s was not requested up to commit %d", feed.ErrNotFound, a, v.Seq)
	}
	p := objectContent{Document: documents[0], Chip: newChip(documents[0].Phase), Log: a.String(), Cluster: v.Query.Get("cluster")}
	if p.Document.Details != nil {
		d := p.Document.Details()
		p.Fields, p.Counts = d.Fields, d.Counts
		for _, s := range d.Stages {
			p.Stages = append(p.Stages, stage{chip: chip{kit.Tone{Class: map[string]string{"✓": "ok", "▶": "busy", "✗": "bad", "‖": "warn", "·": "idle"}[s.Sign], Sign: s.Sign}, s.Name}, Return: s.Return})
		}
		for _, t := range d.Tables {
			p.Tables = append(p.Tables, p.table(t))
		}
	}
	v.Title = p.Document.Kind + " " + p.Document.Name
	p.subject, err = v.about(p.Document.Commands, p.Document.Actions)
	return p, err
}

// table returns the first rows of a table. If a cluster is chosen, it returns only the rows of that
// cluster.
func (p *objectContent) table(t kit.Table) table {
	if t.Cluster > 0 && p.Cluster != "" {
		t.Rows = slices.DeleteFunc(t.Rows, func(row []string) bool { return row[t.Cluster] != p.Cluster })
	}
	out := table{Table: t, All: len(t.Rows), More: max(0, len(t.Rows)-maxRows)}
	out.Rows = t.Rows[:out.All-out.More]
	return out
}

// link returns the address of an aggregate's page, or "" if there is no page.
func (v *view) link(a eventlog.Aggregate) string {
	switch a.Kind {
	case eventlog.KindRun, eventlog.KindMove, eventlog.KindPause:
		return v.To("/"+string(a.Kind), "id", a.ID)
	case eventlog.KindRemediation:
		return v.To("/owner", "id", a.ID)
	}
	if feed.NewFold(a) == nil { // the aggregate is of the daemon, or a later version wrote it
		return ""
	}
	return v.To("/object", "kind", string(a.Kind), "id", a.ID)
}
