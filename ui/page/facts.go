package page

import (
	"slices"
	"strings"
	"time"

	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
)

const (
	maxFacts           = 60
	maxFactsOfItem     = 100
	maxFactsOnPage     = 250
	maxCommitsSearched = 50_000 // commits that are searched for matching facts
)

type fact struct {
	chip
	Seq    uint64
	Index  int    // within its commit
	Event  string // address of the event's page
	At     time.Time
	Kind   string
	About  string // ID of the aggregate
	Link   string
	Detail string
	Actor  string
}

type factFilter struct {
	Kind, Text, Actor string
}

func (f factFilter) matches(e fact) bool {
	has := func(text, part string) bool { return strings.Contains(strings.ToLower(text), strings.ToLower(part)) }
	return (f.Kind == "" || f.Kind == e.Kind) && (f.Actor == "" || has(e.Actor, f.Actor)) &&
		(f.Text == "" || has(e.About, f.Text) || has(e.Detail, f.Text) || has(e.Word, f.Text))
}

type factsPage struct {
	Facts []fact
	// Whole is true if the search reached the beginning of the log.
	Whole bool
}

func facts(v *view) (any, error) {
	v.Title = "Facts"
	f := factFilter{Kind: v.Query.Get("kind"), Text: v.Query.Get("text"), Actor: v.Query.Get("actor")}
	list, whole, err := v.lastFacts(f, maxFactsOnPage)
	return factsPage{Facts: list, Whole: whole}, err
}

// lastFacts returns the last matching facts, newest first, and whether the whole log was searched.
func (v *view) lastFacts(f factFilter, most int) (list []fact, whole bool, err error) {
	commits := v.site.feed.Commits
	seq := v.Seq
	for asked := 0; seq > 0 && asked < maxCommitsSearched; seq-- {
		asked++
		if f.Kind != "" && f.Kind != string(commits.Aggregate(seq).Kind) {
			continue
		}
		r, err := commits.Read(seq)
		if err != nil {
			return nil, false, err
		}
		for _, e := range slices.Backward(v.factsOf(r)) {
			if !f.matches(e) {
				continue
			}
			if len(list) == most {
				return list, false, nil
			}
			list = append(list, e)
		}
	}
	return list, seq == 0, nil
}

// subject contains what the pages of all aggregates show: what users can do now, and the last
// facts.
type subject struct {
	ID       string
	Commands []string
	Acts     []actionLink
	Facts    []fact
	// Earlier is the number of earlier commits whose facts are omitted.
	Earlier int
}

func (v *view) about(commands []string, actions []kit.Action) (s subject, err error) {
	s = subject{ID: v.Query.Get("id"), Commands: v.commands(commands), Acts: v.acts(actions)}
	s.Facts, s.Earlier, err = v.lastFactsAbout(v.aggregate())
	return s, err
}

// lastFactsAbout returns the last facts about an aggregate, newest first. earlier is the number of
// earlier commits whose facts are omitted.
func (v *view) lastFactsAbout(a eventlog.Aggregate) (list []fact, earlier int, err error) {
	of := v.site.feed.Commits.Sequences(a, v.Seq)
	for i, seq := range slices.Backward(of) {
		if len(list) >= maxFactsOfItem {
			return list, i + 1, nil
		}
		r, err := v.site.feed.Commits.Read(seq)
		if err != nil {
			return nil, 0, err
		}
		told := v.factsOf(r)
		slices.Reverse(told)
		if list = append(list, told...); len(list) > maxFactsOfItem {
			return list[:maxFactsOfItem], i + 1, nil
		}
	}
	return list, 0, nil
}

func (v *view) factsOf(r eventlog.Record) (list []fact) {
	for i, e := range kit.Events(r) {
		list = append(list, fact{
			chip: newChip(e.Line.Name), Seq: e.Seq, Index: i, Event: eventLink(e.Seq, i), At: e.Time, Kind: string(e.Aggregate.Kind), About: e.Aggregate.ID, Link: v.link(e.Aggregate),
			Detail: e.Text(), Actor: kit.Actor(e.Actor),
		})
	}
	return list
}
