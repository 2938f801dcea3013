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
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	// Generation is the generation of the resource.
	Generation int64  `json:"generation"`
	Schedule   string `json:"schedule"`
	TimeZone   string `json:"timeZone"`
	Suspend    bool   `json:"suspend,omitempty"`
	// StartingDeadline is how late a backup may begin. Timeout is how long one attempt may take.
	StartingDeadline Duration `json:"startingDeadline"`
	Timeout          Duration `json:"timeout"`
	// Clusters are the names of Clusters. Selector is a label selector if BySelector is true. All
	// selects the whole namespace.
	Clusters   []string `json:"clusters,omitempty"`
	Selector   string   `json:"selector,omitempty"`
	BySelector bool     `json:"bySelector,omitempty"`
	All        bool     `json:"all,omitempty"`
	// Destination is where backups are stored.
	Destination Destination `json:"destination"`
	// Recipients are public keys of age. Without recipients backups are in plain text.
	Recipients []string `json:"recipients,omitempty"`
	// KeepLast and KeepFor keep the newest and the younger backups. Zero keeps none for that
	// reason; if both are zero, all are kept.
	KeepLast int      `json:"keepLast,omitempty"`
	KeepFor  Duration `json:"keepFor,omitempty"`
}

// Duration is a time.Duration in the text form "5m0s".
type Duration = pause.Duration

// Destination is a folder on the daemon's volume or, if Bucket is not empty, a part of a bucket.
type Destination struct {
	Folder string `json:"folder,omitempty"`

	Endpoint string `json:"endpoint,omitempty"`
	Bucket   string `json:"bucket,omitempty"`
	Prefix   string `json:"prefix,omitempty"`
	Region   string `json:"region,omitempty"`
	// Secret is the Secret in the namespace that has the credentials.
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
	// Path is the name of its folder at the destination.
	Path     string    `json:"path"`
	TakenAt  time.Time `json:"takenAt"`
	Clusters []string  `json:"clusters,omitempty"`
	Objects  int       `json:"objects,omitempty"`
	Bytes    int64     `json:"bytes,omitempty"`
	// Changed is the number of objects that changed until reading ended. Warnings is the number of other problems.
	Changed  int `json:"changed,omitempty"`
	Warnings int `json:"warnings,omitempty"`
}

// Problem is the reason for a failure, the field of the resource at fault, if any, and what to do.
type Problem struct {
	// Reason is a word in CamelCase.
	Reason  string `json:"reason,omitempty"`
	Field   string `json:"field,omitempty"`
	Message string `json:"message,omitempty"`
	Next    string `json:"next,omitempty"`
}

// The events of a schedule.
type (
	// Configured records the specification that applies from now on.
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
		// Due is the time of the schedule that the backup is for; zero if a user requested it.
		Due time.Time `json:"due,omitzero"`
		// Skipped is the number of earlier times that were missed.
		Skipped int `json:"skipped,omitempty"`
		// Request is the value of the user's request.
		Request string `json:"request,omitempty"`
	}
	// Completed records that the backup is complete at its path.
	Completed struct {
		Backup
	}
	// Failed records that no backup with this ID is known to be complete. Its files are deleted,
	// unless it turns out to be complete.
	Failed struct {
		ID string `json:"id"`
		Problem
		// Unwritten means that nothing was written at its path.
		Unwritten bool `json:"unwritten,omitempty"`
	}
	// RemovalStarted records the IDs of backups that are no longer kept and are about to be deleted.
	RemovalStarted struct {
		Backups []string `json:"backups"`
	}
	// Removed records backups that are no longer at the destination. Incomplete are the paths of
	// backups that were never complete.
	Removed struct {
		Backups    []Backup `json:"backups,omitempty"`
		Incomplete []string `json:"incomplete,omitempty"`
		// Foreign are paths that were not changed, because this schedule has not written their
		// content.
		Foreign []string `json:"foreign,omitempty"`
	}
	// RemovalFailed records that a backup could not be deleted. The deletion is retried.
	RemovalFailed struct {
		Problem
	}
	// Ended records that the resource was deleted. The backups are kept.
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

// NewCatalog returns the events of a schedule and their types in the log.
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

// Links returns the links between the events of one attempt, and to the request for it.
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
