package remediation

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/api/v1alpha1"
)

// reconcileTimeout bounds the writes of one reconcile.
const reconcileTimeout = time.Minute

// View is what the controllers read of the log.
type View interface {
	// Status of a machine's remediation, by the owner's id; false when the log has nothing of it.
	Status(owner string, machine types.UID) (v1alpha1.SurgeRemediationStatus, bool)
	// History lists the last remediations of one policy that have ended, the newest first; at most so many.
	History(namespace, policy string, most int) []v1alpha1.PastRemediation
	// Etcd lists the problems of the etcd of an owner, by its id.
	Etcd(owner string) []v1alpha1.EtcdProblem
}
