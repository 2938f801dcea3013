package schedule

import (
	"time"

	"scute.dev/aggregate"
	"scute.dev/eventlog"
	"scute.dev/mover"
)

// Event is one fact about a schedule.
type Event interface{ event() }

// Spec is what was asked for, recorded in the log by Configured.
type Spec struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	// Generation is that of the resource.
	Generation int64  `json:"generation"`
	Schedule   string `json:"schedule"`
	TimeZone   string `json:"timeZone"`
	Suspend    bool   `json:"suspend,omitempty"`
	// StartingDeadline is how late a backup may begin, Timeout how long one attempt may take.
	StartingDeadline Duration `json:"startingDeadline"`
	Timeout          Duration `json:"timeout"`
	// Clusters by their names, a label selector in its text form where BySelector says that there is one, or All of the namespace.
	Clusters   []string `json:"clusters,omitempty"`
	Selector   string   `json:"selector,omitempty"`
	BySelector bool     `json:"bySelector,omitempty"`
	All        bool     `json:"all,omitempty"`
	// Destination is where backups are kept.
	Destination Destination `json:"destination"`
	// Recipients are public keys of age; none is plain text.
	Recipients []string `json:"recipients,omitempty"`
	// KeepLast and KeepFor keep the newest backups, and those that are younger; zero keeps none for that reason. With neither all are kept.
	KeepLast int      `json:"keepLast,omitempty"`
	KeepFor  Duration `json:"keepFor,omitempty"`
}

// Duration is a time.Duration that reads and writes as "5m0s".
type Duration = mover.Duration

// Destination is a folder on the daemon's volume, or a part of a bucket where Bucket is not empty.
type Destination struct {
	Folder string `json:"folder,omitempty"`

	Endpoint string `json:"endpoint,omitempty"`
	Bucket   string `json:"bucket,omitempty"`
	Prefix   string `json:"prefix,omitempty"`
	Region   string `json:"region,omitempty"`
	// Secret of the namespace with the credentials.
	Secret   string `json:"secret,omitempty"`
	Insecure bool   `json:"insecure,omitempty"`
}

// Same says that two destinations are the same place, whatever the way to it.
func (d Destination) Same(other Destination) bool {
	return d.Folder == other.Folder && d.Endpoint == other.Endpoint && d.Bucket == other.Bucket && d.Prefix == other.Prefix
}

// Backup is one that is complete.
type Backup struct {
	ID string `json:"id"`
	// Place is the name of its folder at the destination.
	Place    string    `json:"place"`
	TakenAt  time.Time `json:"takenAt"`
	Clusters []string  `json:"clusters,omitempty"`
	Objects  int       `json:"objects,omitempty"`
	Bytes    int64     `json:"bytes,omitempty"`
	// Changed counts objects that changed until the end of the reading, Warnings what else should be looked at.
	Changed  int `json:"changed,omitempty"`
	Warnings int `json:"warnings,omitempty"`
}

// Problem says why something failed, which field of the resource it is about, if any, and what to do.
type Problem struct {
	// Reason is a word in CamelCase.
	Reason  string `json:"reason,omitempty"`
	Field   string `json:"field,omitempty"`
	Message string `json:"message,omitempty"`
	Next    string `json:"next,omitempty"`
}

// The facts of a schedule.
type (
	// Configured records what is asked for from now on.
	Configured struct {
		Spec Spec `json:"spec"`
	}
	// Asked: somebody wants a backup now. Each other value asks for another one.
	Asked struct {
		Value string `json:"value"`
	}
	// Claimed fences off every earlier holder: their next append fails.
	Claimed struct {
		Holder string `json:"holder"`
	}
	// Started: a backup is about to be made.
	Started struct {
		ID    string `json:"id"`
		Place string `json:"place"`
		// Due is the time of the schedule that it is for; zero for one that somebody asked for.
		Due time.Time `json:"due,omitzero"`
		// Skipped counts earlier times that were missed.
		Skipped int `json:"skipped,omitempty"`
		// Request is the value that asked for it.
		Request string `json:"request,omitempty"`
	}
	// Completed: the backup is complete at its place.
	Completed struct {
		Backup
	}
	// Failed: no backup of this ID is known to be complete. What it left at its place is removed, unless it is one after all.
	Failed struct {
		ID string `json:"id"`
		Problem
		// Unwritten says that nothing was written at its place.
		Unwritten bool `json:"unwritten,omitempty"`
	}
	// RemovalStarted: these backups, by their IDs, are no longer kept and are about to be removed.
	RemovalStarted struct {
		Backups []string `json:"backups"`
	}
	// Removed: these backups are no longer at the destination. Incomplete ones had never been complete.
	Removed struct {
		Backups    []Backup `json:"backups,omitempty"`
		Incomplete []string `json:"incomplete,omitempty"`
		// Foreign are places that were left alone, because what is there is not what this schedule wrote.
		Foreign []string `json:"foreign,omitempty"`
	}
	// RemovalFailed: something that is no longer kept could not be removed. It is tried again.
	RemovalFailed struct {
		Problem
	}
	// Ended: the resource was deleted. The backups are kept.
	Ended struct {
		Reason string `json:"reason,omitempty"`
	}
)

func (Configured) event()     {}
func (Asked) event()          {}
func (Claimed) event()        {}
func (Started) event()        {}
func (Completed) event()      {}
func (Failed) event()         {}
func (Removed) event()        {}
func (RemovalFailed) event()  {}
func (RemovalStarted) event() {}
func (Ended) event()          {}

// NewCatalog maps the facts of a schedule to their types in the log.
func NewCatalog() *eventlog.Catalog[Event] {
	return eventlog.NewCatalog(eventlog.KindBackup,
		eventlog.Define[Event, Configured]("configured", 1),
		eventlog.Define[Event, Asked]("asked", 1),
		eventlog.Define[Event, Claimed]("claimed", 1),
		eventlog.Define[Event, Started]("started", 1),
		eventlog.Define[Event, Completed]("completed", 1),
		eventlog.Define[Event, Failed]("failed", 1),
		eventlog.Define[Event, RemovalStarted]("removal-started", 1),
		eventlog.Define[Event, Removed]("removed", 1),
		eventlog.Define[Event, RemovalFailed]("removal-failed", 1),
		eventlog.Define[Event, Ended]("ended", 1),
	)
}

// Links relate the events of one attempt, and those that asked for it.
func Links(_ *State, event Event) aggregate.Links {
	backup := func(id string) aggregate.Key { return aggregate.Key{What: "backup", Name: id} }
	switch e := event.(type) {
	case Configured:
		return aggregate.Links{Is: []aggregate.Key{{What: "configured"}}}
	case Asked:
		return aggregate.Links{Is: []aggregate.Key{{What: "asked", Name: e.Value}}}
	case Started:
		l := aggregate.Links{Is: []aggregate.Key{backup(e.ID)}, Of: []aggregate.Key{{What: "configured"}}}
		if e.Request != "" {
			l.Of = []aggregate.Key{{What: "asked", Name: e.Request}}
		}
		return l
	case Completed:
		return aggregate.Links{Is: []aggregate.Key{{What: "completed"}}, Of: []aggregate.Key{backup(e.ID)}, Ends: []aggregate.Key{backup(e.ID)}}
	case Failed:
		return aggregate.Links{Of: []aggregate.Key{backup(e.ID)}}
	case RemovalStarted, Removed:
		return aggregate.Links{Of: []aggregate.Key{{What: "completed"}, {What: "configured"}}}
	default:
		return aggregate.Links{}
	}
}
