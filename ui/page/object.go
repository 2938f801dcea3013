package page

import (
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
)

// objectPage is the page of an object of a kind without a page of its own.
type objectPage struct {
	kit.Document
	Chip    Chip
	Log     string // the aggregate
	Lines   []string
	Acts    []Act
	Facts   []Fact
	Earlier int
}

func (p objectPage) title() string { return p.Kind + " " + p.Name }

func otherObject(v *view) (any, error) {
	a, _ := v.about()
	documents, err := v.world.Object(v.kit(), a)
	if err != nil {
		return nil, err
	}
	p := objectPage{Log: a.String()}
	p.Kind, p.Name = string(a.Kind), a.ID // of an aggregate without objects
	for _, d := range documents {
		p.Document, p.Chip, p.Lines, p.Acts = d, chip(d.Phase), v.commands(d.Commands), v.acts(d.Actions)
	}
	p.Facts, p.Earlier, err = v.factsAbout(eventlog.Aggregate{Kind: a.Kind, ID: a.ID})
	return p, err
}
