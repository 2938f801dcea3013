package aggregate

import (
	"context"
	"maps"

	"scute.dev/eventlog"
)

// Key names an event of an object for those that follow from it, for example the attempt at a task. A later event of the same
// key takes its place.
type Key struct{ What, Name string }

// Links relate an event to others of its object. A domain derives them from the event and the state before it.
type Links struct {
	// Is are the keys of the event.
	Is []Key
	// Of are the keys of the events that it may follow from: the latest of these is its cause. Without any it has none: a person
	// asked for it, or something was observed.
	Of []Key
	// Ends are keys that no later event follows from. They are forgotten.
	Ends []Key
}

// Causes knows the events of an object by their keys. The zero value knows none.
type Causes struct {
	latest map[Key]place
	count  int
}

// place of an event among those of its object.
type place struct {
	id string
	at int
}

// Of is the ID of the event that one with these links follows from, "" if there is none.
func (c *Causes) Of(l Links) string { return c.of(l, nil) }

func (c *Causes) of(l Links, fresh map[Key]place) string {
	var last place
	for _, key := range l.Of {
		for _, known := range []map[Key]place{fresh, c.latest} {
			if p, ok := known[key]; ok && p.at > last.at {
				last = p
			}
		}
	}
	return last.id
}

// Add takes an event in that is stored.
func (c *Causes) Add(l Links, id string) {
	c.count++
	if c.latest == nil && len(l.Is) > 0 {
		c.latest = make(map[Key]place)
	}
	for _, key := range l.Is {
		c.latest[key] = place{id, c.count}
	}
	c.end(l)
}

func (c *Causes) end(l Links) {
	for _, key := range l.Ends {
		delete(c.latest, key)
	}
}

// set gives the events of a commit their causes, which may be in the same commit. The commit is taken in by done, when it is
// stored.
func (c *Causes) set(commit *eventlog.Commit, links []Links) (done func()) {
	fresh, count := make(map[Key]place), c.count
	for i := range commit.Events {
		commit.Events[i].Causation = c.of(links[i], fresh)
		count++
		for _, key := range links[i].Is {
			fresh[key] = place{commit.EventID(i), count}
		}
	}
	return func() {
		if c.latest == nil {
			c.latest = fresh
		} else {
			maps.Copy(c.latest, fresh)
		}
		c.count = count
		for _, l := range links {
			c.end(l)
		}
	}
}

// recall reads the events that the state has, and that the causes do not know yet: a state may come from a view. After an event that
// this program cannot read, the causes before it are forgotten: it may be a later one.
func (r *Root[E, S]) recall(ctx context.Context) error {
	if r.Links == nil || r.linked == r.Seq {
		return nil
	}
	records, err := r.Log.Read(ctx, r.Name, r.linked)
	if err != nil {
		return err
	}
	for _, record := range records {
		if record.Seq > r.Seq {
			break
		}
		if err := r.Catalog.Each(record, r.link); err != nil {
			r.causes = Causes{}
		}
		r.linked = record.Seq
	}
	return nil
}

// link takes a stored event in.
func (r *Root[E, S]) link(e E, stored eventlog.Event) { r.causes.Add(r.Links(r.State, e), stored.ID) }
