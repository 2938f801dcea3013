package page

import (
	"fmt"
	"slices"

	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
	"scute.dev/ui/feed"
)

const maxEnded = 12

type item struct {
	chip
	Document kit.Document
	Link     string
	Commands []string
	Acts     []actionLink
}

type nowPage struct {
	Waiting, Busy, Ended []item // Waiting and Busy have the items of the chosen page
	OfWaiting, OfBusy    position
	MoreEnded            int
	Unreadable           []item
	Facts                []fact
	Whole                bool
}

// now builds the page that lists the objects that wait for an operator, are in progress, or ended
// last.
func now(v *view) (any, error) {
	var p nowPage
	for a, f := range feed.All[feed.Fold](v.Snapshot) {
		for _, d := range f.Documents(v.site.kit) {
			p.add(v, a, d)
		}
	}
	for a, err := range v.Unreadable() {
		p.Unreadable = append(p.Unreadable, item{chip: newChip("not readable"), Document: kit.Document{Kind: string(a.Kind), Name: a.ID, Message: err.Error()}})
	}
	slices.SortStableFunc(p.Ended, func(a, b item) int { return b.Document.Since.Compare(a.Document.Since) })
	var err error
	if p.Waiting, p.OfWaiting, err = paged(v, longList{Param: "waiting", Label: "Pages of resources that wait for you", Rows: rowsPerPage}, p.Waiting); err != nil {
		return nil, err
	}
	if v.Title = "Now"; p.OfWaiting.All > 0 {
		v.Title = fmt.Sprintf("(%d) Now", p.OfWaiting.All)
	}
	if p.Busy, p.OfBusy, err = paged(v, longList{Param: "busy", Label: "Pages of resources in progress", Rows: rowsPerPage}, p.Busy); err != nil {
		return nil, err
	}
	p.MoreEnded = max(0, len(p.Ended)-maxEnded)
	p.Ended = p.Ended[:min(len(p.Ended), maxEnded)]
	p.Facts, p.Whole, err = v.lastFacts(factFilter{}, maxFacts)
	return p, err
}

func (p *nowPage) add(v *view, a eventlog.Aggregate, d kit.Document) {
	d.Name = d.Namespace + "/" + d.Name
	t := item{chip: newChip(d.Phase), Document: d, Link: v.link(a), Acts: v.acts(d.Actions)}
	switch d.State {
	case kit.Ended:
		p.Ended = append(p.Ended, t)
	case kit.Waiting:
		t.Commands = v.commands(d.Commands)
		p.Waiting = append(p.Waiting, t)
	case kit.Active:
		p.Busy = append(p.Busy, t)
	}
}

// commands returns the commands in lines. It returns nil on pages of the past, because a command
// cannot change the past, and if no command can read the log.
func (v *view) commands(lines []string) []string {
	if v.Past || v.site.NoCommands {
		return nil
	}
	return lines
}
