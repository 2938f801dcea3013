package move

import (
	"cmp"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/controllers/resource"
	"scute.dev/mover"
)

// These timeouts apply to resources written without the schema's defaults.
const (
	defaultAcknowledge = 5 * time.Minute
	defaultCreate      = 30 * time.Minute
	defaultResume      = 10 * time.Minute
)

// Spec converts the spec of the resource.
func Spec(m *v1alpha1.Move) mover.Spec {
	return mover.Spec{
		Namespace: m.Namespace, Name: m.Name,
		Clusters: m.Spec.Selection.Clusters, All: m.Spec.Selection.All,
		Target: mover.Target{
			AllowInsecure: m.Spec.Target.AllowInsecure,
			SecretName:    m.Spec.Target.KubeconfigSecretRef.Name,
			SecretKey:     cmp.Or(m.Spec.Target.KubeconfigSecretRef.Key, "value"),
		},
		DryRun:      m.Spec.DryRun,
		KeepFailed:  m.Spec.RollbackOnFailure != nil && !*m.Spec.RollbackOnFailure,
		CarryStatus: m.Spec.CarryStatus,
		AcceptLoss:  m.Spec.AcceptLoss,
		Acknowledge: resource.Duration(m.Spec.Timeouts.Acknowledge, defaultAcknowledge),
		Create:      resource.Duration(m.Spec.Timeouts.Create, defaultCreate),
		Resume:      resource.Duration(m.Spec.Timeouts.Resume, defaultResume),
		AckKinds:    resource.Durations(m.Spec.Timeouts.AcknowledgeKinds),
	}
}
