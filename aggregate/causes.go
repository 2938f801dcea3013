package aggregate

import (
	"context"
	"maps"

	"scute.dev/eventlog"
)

// Key names an event of an object, for example the attempt at a task, so that later events can refer to it as their cause. A later event with the
// same key replaces it.
type Key struct{ What, Name string }

// Links relate an event to other events of its object. A domain derives them from the event and the state before it.
type Links struct {
	// Is are the keys of the event.
	Is []Key
	// Of are the keys of possible causes. The latest event with one of these keys is the cause. An event without a cause is a person's request or
	// an observation.
	Of []Key
	// Ends are keys that no later event refers to. They are deleted.
	Ends []Key
}

// Causes maps the keys of an object's events to these events. The zero value is empty.
type Causes struct {
	latest map[Key]place
	count  int
}

// place is the ID of an event and its number within the object.
type place struct {
	id string
	at int
}

// Of returns the ID of the event that causes an event with these links, or "" if there is none.
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

// Add adds a stored event.
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

// set sets the causes of a commit's events, which may be in the same commit. The caller calls done when the commit is stored, which adds
// its events.
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

// recall adds the events that the state contains and the causes do not, because a state may come from a view. At an event that this program
// cannot read it deletes all causes before it, because the unreadable event may be the latest cause.
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

// link adds a stored event to the causes.
func (r *Root[E, S]) link(e E, stored eventlog.Event) { r.causes.Add(r.Links(r.State, e), stored.ID) }
