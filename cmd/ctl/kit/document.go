package kit

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Document is what users see of an object in a list or on a page without details of its kind.
type Document struct {
	// Kind is the noun: "move". ID is the object's ID in the log.
	Kind, Namespace, Name, ID      string
	Phase, Message, Next, Progress string
	// Began is a word for how the object began, such as "requested". Since is when it began, or
	// when it ended if it has ended.
	Began string
	Since time.Time
	State documentState
	// Details returns what the object's page shows in addition; nil if there is nothing, or if the
	// kind has a separate page.
	Details func() Details
	// Commands are the commands about the object, each with its effect. Actions are what users can do now.
	Commands []string
	Actions  []Action
}

// documentState is the list that an object belongs to.
type documentState int

// The states of an object.
const (
	// Active means that the object makes progress, or waits for a time.
	Active documentState = iota
	// Waiting means that the object waits for a user.
	Waiting
	// Ended means that the object has ended.
	Ended
)

// Action is an operation on an object that users can do now: "pause" of a "run".
type Action struct{ Do, Kind, Namespace, Name, ID string }

// End sets the end of an object. at is nil if the log does not contain it.
func (d *Document) End(at *metav1.Time) {
	d.State = Ended
	if at != nil {
		d.Since = at.Time
	}
}
