package page

import (
	"scute.dev/cmd/ctl/kit"
	"scute.dev/ui/feed"
)

// genericPage is the page of an object of a kind without a page of its own.
type genericPage struct {
	Document kit.Document
	subject
	Chip   Chip
	Fields []kit.DocumentField
	Table  kit.DocumentTable
	Log    string // the aggregate
}

func generic(v *view) (any, error) {
	a := v.aggregate()
	f, err := feed.Find[feed.Fold](v.Snapshot, a.Kind, a.ID)
	if err != nil {
		return nil, err
	}
	p := genericPage{Log: a.String()}
	p.Document.Kind, p.Document.Name = string(a.Kind), a.ID // of an aggregate without objects
	for _, d := range f.Documents(v.site.kit) {
		p.Document, p.Chip = d, chip(d.Phase)
		if d.Details != nil {
			p.Fields, p.Table = d.Details()
		}
	}
	v.Title = p.Document.Kind + " " + p.Document.Name
	p.subject, err = v.about(p.Document.Commands, p.Document.Actions)
	return p, err
}
