package supervise

import "time"

// Throttled is why an object does not start although it could. The zero value means that it is not
// throttled.
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

// Quota returns which limit of the log keeps a namespace from starting work, and until when; "" if
// none does. A nil Quota means that there is no limit.
type Quota func(namespace string) string

// RecheckInterval is the delay until an object that a quota keeps from starting is checked again.
const RecheckInterval = time.Minute

// Throttled returns why the namespace may start no work; zero below the quota.
func (q Quota) Throttled(namespace string) Throttled {
	if q == nil {
		return Throttled{}
	}
	if why := q(namespace); why != "" {
		return Throttled{Reason: QuotaExceeded, Message: why}
	}
	return Throttled{}
}
