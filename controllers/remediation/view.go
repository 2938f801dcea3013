package remediation

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/api/v1alpha1"
)

const (
	// catchUpPause is how long a reconcile waits for the view.
	catchUpPause = 100 * time.Millisecond
	// reconcileTimeout bounds the writes of one reconcile.
	reconcileTimeout = time.Minute
)

// View is what the controllers read of the log.
type View interface {
	// Status of a machine's remediation, by the owner's id; false when the log has nothing of it.
	Status(owner string, machine types.UID) (v1alpha1.SurgeRemediationStatus, bool)
}

func waiting(caughtUp <-chan struct{}) bool {
	select {
	case <-caughtUp:
		return false
	default:
		return true
	}
}
