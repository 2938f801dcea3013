package page

import (
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
)

// genericPage is the page of an object of a kind without a page of its own.
type genericPage struct {
	kit.Document
	Chip    Chip
	Fields  []kit.DocumentField
	Table   kit.DocumentTable
	Log     string // the aggregate
	Lines   []string
	Acts    []ActionLink
	Facts   []Fact
	Earlier int
}

func (p genericPage) title() string { return p.Kind + " " + p.Name }

func generic(v *view) (any, error) {
	a, _ := v.subject()
	documents, err := v.snapshot.Object(v.kit(), a)
	if err != nil {
		return nil, err
	}
	p := genericPage{Log: a.String()}
	p.Kind, p.Name = string(a.Kind), a.ID // of an aggregate without objects
	for _, d := range documents {
		p.Document, p.Chip, p.Lines, p.Acts = d, chip(d.Phase), v.commands(d.Commands), v.acts(d.Actions)
		if d.Details != nil {
			p.Fields, p.Table = d.Details()
		}
	}
	p.Facts, p.Earlier, err = v.factsAbout(eventlog.Aggregate{Kind: a.Kind, ID: a.ID})
	return p, err
}
