package schedule

import (
	"time"

	"scute.dev/aggregate"
	"scute.dev/eventlog"
	"scute.dev/pause"
)

// Event is one fact about a schedule.
type Event interface{ event() }

// Spec is the specification of a schedule, as recorded by Configured.
type Spec struct {
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
	Generation int64  `json:"generation"`
	Schedule   string `json:"schedule"`
	TimeZone   string `json:"timeZone"`
	Suspend    bool   `json:"suspend,omitempty"`
	// StartingDeadline is how late a backup may begin; Timeout limits one attempt.
	StartingDeadline Duration `json:"startingDeadline"`
	Timeout          Duration `json:"timeout"`
	// Clusters are names. Selector is a label selector if BySelector is true. All selects the whole
	// namespace.
	Clusters    []string    `json:"clusters,omitempty"`
	Selector    string      `json:"selector,omitempty"`
	BySelector  bool        `json:"bySelector,omitempty"`
	All         bool        `json:"all,omitempty"`
	Destination Destination `json:"destination"`
	// Recipients are public keys of age. Without them backups are in plain text.
	Recipients []string `json:"recipients,omitempty"`
	// KeepLast is a number of backups, KeepFor an age. Zero keeps none for that reason; if both are
	// zero, all are kept.
	KeepLast int      `json:"keepLast,omitempty"`
	KeepFor  Duration `json:"keepFor,omitempty"`
}

// Duration is a time.Duration that is encoded as "5m0s".
type Duration = pause.Duration

// Destination is a folder on the daemon's volume or, if Bucket is set, a part of a bucket.
type Destination struct {
	Folder string `json:"folder,omitempty"`

	Endpoint string `json:"endpoint,omitempty"`
	Bucket   string `json:"bucket,omitempty"`
	Prefix   string `json:"prefix,omitempty"`
	Region   string `json:"region,omitempty"`
	// Secret has the credentials, in the namespace of the schedule.
	Secret   string `json:"secret,omitempty"`
	Insecure bool   `json:"insecure,omitempty"`
}

// SameLocation reports whether two destinations store backups in the same location. Region and
// credentials may differ.
func (d Destination) SameLocation(other Destination) bool {
	return d.Folder == other.Folder && d.Endpoint == other.Endpoint && d.Bucket == other.Bucket && d.Prefix == other.Prefix
}

// Backup is a complete backup.
type Backup struct {
	ID string `json:"id"`
	// Path is its folder at the destination.
	Path     string    `json:"path"`
	TakenAt  time.Time `json:"takenAt"`
	Clusters []string  `json:"clusters,omitempty"`
	Objects  int       `json:"objects,omitempty"`
	Bytes    int64     `json:"bytes,omitempty"`
	// Changed counts the objects that changed while they were read, Warnings the other problems.
	Changed  int `json:"changed,omitempty"`
	Warnings int `json:"warnings,omitempty"`
}

// Problem is the reason for a failure, the field of the resource at fault, if any, and what to do.
type Problem struct {
	// Reason is in CamelCase.
	Reason  string `json:"reason,omitempty"`
	Field   string `json:"field,omitempty"`
	Message string `json:"message,omitempty"`
	Next    string `json:"next,omitempty"`
}

// The events of a schedule.
type (
	// Configured records the specification from now on.
	Configured struct {
		Spec Spec `json:"spec"`
	}
	// Requested records a user's request for a backup now. Each new value is another request.
	Requested struct {
		Value string `json:"value"`
	}
	// Claimed makes the next append of every earlier holder fail.
	Claimed struct {
		Holder string `json:"holder"`
	}
	// Started records that a backup is about to be made.
	Started struct {
		ID   string `json:"id"`
		Path string `json:"path"`
		// Due is the schedule's time that the backup is for; zero if a user requested it.
		Due time.Time `json:"due,omitzero"`
		// Skipped counts the earlier times that were missed.
		Skipped int `json:"skipped,omitempty"`
		// Request is the value of the user's request.
		Request string `json:"request,omitempty"`
	}
	// Completed records that the backup is complete at its path.
	Completed struct {
		Backup
	}
	// Failed records that the backup is not known to be complete. Its files are deleted, unless it
	// turns out to be complete.
	Failed struct {
		ID string `json:"id"`
		Problem
		// Unwritten means that nothing was written at its path.
		Unwritten bool `json:"unwritten,omitempty"`
	}
	// RemovalStarted records the IDs of backups that are no longer kept and are about to be
	// deleted.
	RemovalStarted struct {
		Backups []string `json:"backups"`
	}
	// Removed records backups that are no longer at the destination. Incomplete are the paths of
	// backups that were never complete.
	Removed struct {
		Backups    []Backup `json:"backups,omitempty"`
		Incomplete []string `json:"incomplete,omitempty"`
		// Foreign are paths that were not changed, because this schedule did not write their
		// content.
		Foreign []string `json:"foreign,omitempty"`
	}
	// RemovalFailed records that a deletion failed and is retried.
	RemovalFailed struct {
		Problem
	}
	// Ended records that the resource was deleted. Its backups are kept.
	Ended struct {
		Reason string `json:"reason,omitempty"`
	}
)

func (Configured) event()     {}
func (Requested) event()      {}
func (Claimed) event()        {}
func (Started) event()        {}
func (Completed) event()      {}
func (Failed) event()         {}
func (Removed) event()        {}
func (RemovalFailed) event()  {}
func (RemovalStarted) event() {}
func (Ended) event()          {}

// NewCatalog returns the event types of a schedule.
func NewCatalog() *eventlog.Catalog[Event] {
	return eventlog.NewCatalog(eventlog.KindBackup,
		eventlog.Define[Event, Configured]("configured", 1),
		eventlog.Define[Event, Requested]("requested", 1),
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

// Links links the events of one attempt, and the request for it.
func Links(_ *State, event Event) aggregate.Links {
	backup := func(id string) aggregate.Key { return aggregate.Key{Kind: "backup", Name: id} }
	switch e := event.(type) {
	case Configured:
		return aggregate.Links{Keys: []aggregate.Key{{Kind: "configured"}}}
	case Requested:
		return aggregate.Links{Keys: []aggregate.Key{{Kind: "requested", Name: e.Value}}}
	case Started:
		l := aggregate.Links{Keys: []aggregate.Key{backup(e.ID)}, CauseKeys: []aggregate.Key{{Kind: "configured"}}}
		if e.Request != "" {
			l.CauseKeys = []aggregate.Key{{Kind: "requested", Name: e.Request}}
		}
		return l
	case Completed:
		return aggregate.Links{Keys: []aggregate.Key{{Kind: "completed"}}, CauseKeys: []aggregate.Key{backup(e.ID)}, Ended: []aggregate.Key{backup(e.ID)}}
	case Failed:
		return aggregate.Links{CauseKeys: []aggregate.Key{backup(e.ID)}}
	case RemovalStarted, Removed:
		return aggregate.Links{CauseKeys: []aggregate.Key{{Kind: "completed"}, {Kind: "configured"}}}
	default:
		return aggregate.Links{}
	}
}
