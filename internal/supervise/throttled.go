package supervise

import "time"

// Throttled describes why an object must wait before it starts. The zero value means that the
// object is not throttled.
type Throttled struct {
	// Reason is one of the constants below.
	Reason  string
	Message string
}

// The reasons for which an object is throttled.
const (
	// NoFreePlace means that the limit of concurrent work is reached.
	NoFreePlace = "NoFreePlace"
	// TooManyUnfinished means that the limit of driven objects is reached, most of which wait.
	TooManyUnfinished = "TooManyUnfinished"
	// QuotaExceeded means that the namespace has used up its quota of the log.
	QuotaExceeded = "QuotaExceeded"
	// NotAdopted means that a client wrote the definition, inputs or outputs to the log, and no
	// resource adopts them.
	NotAdopted = "NotAdopted"
)

// Quota returns a message about the limit of the log that keeps a namespace from starting work, and
// until when it does, or "" if no limit does. A nil Quota means that there is no limit.
type Quota func(namespace string) string

// RecheckInterval is the delay until an object that a quota keeps from starting is checked again.
const RecheckInterval = time.Minute

// Throttled returns why a namespace may not start work, or zero if its quota is not used up.
func (q Quota) Throttled(namespace string) Throttled {
	if q == nil {
		return Throttled{}
	}
	if why := q(namespace); why != "" {
		return Throttled{Reason: QuotaExceeded, Message: why}
	}
	return Throttled{}
}
