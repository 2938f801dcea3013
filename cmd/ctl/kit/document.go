package kit

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Document is how an object appears in a list, or on a page without details of its kind.
type Document struct {
	// Kind is the noun, for example "move". ID is the object's ID in the log.
	Kind, Namespace, Name, ID      string
	Phase, Message, Next, Progress string
	// Began is a word for how the object began, for example "requested". Since is the time when it
	// began. If State is Ended, Since is the time when it ended.
	Began string
	Since time.Time
	State documentState
	// Details returns what else the page shows. It is nil if there is nothing else, or if the kind has
	// its own page.
	Details func() Details
	// Commands are example commands with their effect. Actions are operations that users can do now.
	Commands []string
	Actions  []Action
}

// documentState decides the list in which an object appears.
type documentState int

// The states of an object.
const (
	// Active objects make progress, or wait for a time.
	Active documentState = iota
	// Waiting objects wait for a user.
	Waiting
	Ended
)

// Action is an operation on an object that users can do now, for example "pause" of a "run".
type Action struct{ Do, Kind, Namespace, Name, ID string }

// End records that the object has ended. at is nil if the log does not contain the time.
func (d *Document) End(at *metav1.Time) {
	d.State = Ended
	if at != nil {
		d.Since = at.Time
	}
}
