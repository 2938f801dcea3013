package logcmd

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
)

// chain is the events of an aggregate with their causes.
type chain struct {
	links []link
	byID  map[string]int
}

// link is one event. Its cause precedes it.
type link struct {
	kit.Event
	index    int // within its commit
	cause    int // -1 for none
	selected bool
	shown    bool
}

func newChain() *chain { return &chain{byID: make(map[string]int)} }

// add adds the events of the next commit.
func (c *chain) add(events []kit.Event) {
	for i, e := range events {
		l := link{Event: e, index: i, cause: -1}
		if at, ok := c.byID[e.Causation]; ok && e.Causation != "" {
			l.cause = at
		}
		c.byID[e.ID] = len(c.links)
		c.links = append(c.links, l)
	}
}

// choose selects an event, or all events of a commit. ok is false if there are none.
func (c *chain) choose(seq uint64, index int) (ok bool) {
	for i := range c.links {
		if l := &c.links[i]; l.Seq == seq && (index == all || l.index == index) {
			l.selected, l.shown, ok = true, true, true
		}
	}
	return ok
}

// length returns the number of events in a commit.
func (c *chain) length(seq uint64) (n int) {
	for i := range c.links {
		if c.links[i].Seq == seq {
			n++
		}
	}
	return n
}

// showCauses shows the causes of the chosen events.
func (c *chain) showCauses() {
	for i := len(c.links) - 1; i >= 0; i-- {
		if l := &c.links[i]; l.shown && l.cause >= 0 {
			c.links[l.cause].shown = true
		}
	}
}

// showEffects shows the consequences of the chosen events.
func (c *chain) showEffects() {
	after := make([]bool, len(c.links))
	for i := range c.links {
		l := &c.links[i]
		after[i] = l.selected || l.cause >= 0 && after[l.cause]
		l.shown = l.shown || after[i]
	}
}

// events returns the shown events in the order of the log.
func (c *chain) events() []kit.Event {
	var events []kit.Event
	for i := range c.links {
		if c.links[i].shown {
			events = append(events, c.links[i].Event)
		}
	}
	return events
}

// missingCauses returns the shown events whose cause is not among the aggregate's events.
func (c *chain) missingCauses() (list []link) {
	for _, l := range c.links {
		if l.shown && l.cause < 0 && l.Causation != "" {
			list = append(list, l)
		}
	}
	return list
}

// maxBranchWidth is the maximum width of the branches. Deeper events are at the same depth; otherwise thousands of attempts, each with a branch, would need
// lines of thousands of columns.
const maxBranchWidth = 30

// lines draws the events as a tree, one per line. An event with a single consequence is continued below at the same depth.
func (c *chain) lines(v kit.View) []string {
	followers, roots := make(map[int][]int), []int(nil)
	for i := range c.links {
		switch l := &c.links[i]; {
		case !l.shown:
		case l.cause < 0:
			roots = append(roots, i)
		default:
			followers[l.cause] = append(followers[l.cause], i)
		}
	}
	t := &cli.Table{Header: []string{"TIME", "AGO", "EVENT", "FACT", "DETAIL", "ACTOR"}, Wrap: 2}
	var draw func(list []int, before string)
	draw = func(list []int, before string) {
		for n, i := range list {
			head, below := before, before
			switch {
			case len(list) == 1:
			case n == len(list)-1:
				head, below = before+"└─ ", before+"   "
			default:
				head, below = before+"├─ ", before+"│  "
			}
			c.draw(t, v, i, head)
			if utf8.RuneCountInString(below) > maxBranchWidth {
				below = before
			}
			draw(followers[i], below)
		}
	}
	draw(roots, "")
	return t.Lines(v.Paint, v.Width)
}

func (c *chain) draw(t *cli.Table, v kit.View, i int, head string) {
	l := &c.links[i]
	what := l.Line.Name
	if l.selected {
		what = v.Paint.Text(cli.Bold, what+" *")
	}
	t.Add(cli.Exact(l.Time), cli.Ago(v.Now, l.Time), fmt.Sprintf("%d/%d", l.Seq, l.index), head+what, l.Text(), kit.Actor(strings.TrimSpace(l.Actor)))
}
