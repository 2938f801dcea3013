package aggregate

import (
	"context"

	"scute.dev/eventlog"
)

// Key names an event of an object, for example the attempt at a task, so that later events can
// refer to it as their cause. A later event with the same key replaces it.
type Key struct{ Kind, Name string }

// Links relates an event to other events of its object. A domain derives it from the event and the
// state before the event.
type Links struct {
	Keys []Key
	// CauseKeys are keys of possible causes. The latest event with one of them is the cause. An
	// event without a cause is a user's request or an observation.
	CauseKeys []Key
	// Ended are keys to delete, because no later event refers to them.
	Ended []Key
}

// Causes maps the keys of an object's events to these events. The zero value is empty.
type Causes struct {
	latest map[Key]eventRef
	count  int
}

type eventRef struct {
	id     string
	number int
}

// Find returns the ID of the event that causes an event with these links, "" if there is none.
func (c *Causes) Find(l Links) string { return c.find(l, nil) }

func (c *Causes) find(l Links, fresh map[Key]eventRef) string {
	var last eventRef
	for _, key := range l.CauseKeys {
		for _, known := range []map[Key]eventRef{fresh, c.latest} {
			if p, ok := known[key]; ok && p.number > last.number {
				last = p
			}
		}
	}
	return last.id
}

// Add adds a stored event with its links and its ID.
func (c *Causes) Add(l Links, id string) {
	c.count++
	if c.latest == nil && len(l.Keys) > 0 {
		c.latest = make(map[Key]eventRef)
	}
	for _, key := range l.Keys {
		c.latest[key] = eventRef{id, c.count}
	}
	for _, key := range l.Ended {
		delete(c.latest, key)
	}
}

// setCauses sets the causes of a commit's events, which may be in the same commit. The caller calls
// done when the commit is stored.
func (c *Causes) setCauses(commit *eventlog.Commit, links []Links) (done func()) {
	fresh, ids := make(map[Key]eventRef), make([]string, len(links))
	for i, l := range links {
		commit.Events[i].Causation, ids[i] = c.find(l, fresh), commit.EventID(i)
		for _, key := range l.Keys {
			fresh[key] = eventRef{ids[i], c.count + i + 1}
		}
	}
	return func() {
		for i, l := range links {
			c.Add(l, ids[i])
		}
	}
}

// loadCauses reads the events that the state includes but the causes do not contain, and adds them
// to the causes. This happens if the state is from a view. At an event that this program cannot
// read, it deletes all earlier causes, because that event may be the latest cause.
func (r *Root[E, S]) loadCauses(ctx context.Context) error {
	if r.Links == nil || r.linkedSeq == r.Seq {
		return nil
	}
	records, err := r.Log.Read(ctx, r.Name, r.linkedSeq)
	if err != nil {
		return err
	}
	for _, record := range records {
		if record.Seq > r.Seq {
			break
		}
		if err := r.Catalog.Each(record, r.addCause); err != nil {
			r.causes = Causes{}
		}
		r.linkedSeq = record.Seq
	}
	return nil
}

func (r *Root[E, S]) addCause(e E, stored eventlog.Event) {
	r.causes.Add(r.Links(r.State, e), stored.ID)
}
