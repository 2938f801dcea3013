package remediation

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/api/v1alpha1"
)

// reconcileTimeout bounds the writes of one reconciliation.
const reconcileTimeout = time.Minute

// View is the part of the log that the controllers read.
type View interface {
	// Status returns a machine's remediation by the owner's id; false if the log has none.
	Status(owner string, machine types.UID) (v1alpha1.SurgeRemediationStatus, bool)
	// History lists the most recent remediations of one policy that have ended, newest first. most bounds their number.
	History(namespace, policy string, most int) []v1alpha1.PastRemediation
	// Etcd lists the etcd problems of an owner by its id.
	Etcd(owner string) []v1alpha1.EtcdProblem
}
