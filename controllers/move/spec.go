package move

import (
	"cmp"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/mover"
)

// Defaults of the timeouts, for resources that were written without the schema's defaults.
const (
	defaultAcknowledge = 5 * time.Minute
	defaultCreate      = 30 * time.Minute
	defaultAwake       = 10 * time.Minute
)

// Spec converts the spec of the resource.
func Spec(m *v1alpha1.Move) mover.Spec {
	s := mover.Spec{
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
		Acknowledge: timeout(m.Spec.Timeouts.Acknowledge, defaultAcknowledge),
		Create:      timeout(m.Spec.Timeouts.Create, defaultCreate),
		Awake:       timeout(m.Spec.Timeouts.Awake, defaultAwake),
	}
	for kind, d := range m.Spec.Timeouts.AcknowledgeKinds {
		if s.AckKinds == nil {
			s.AckKinds = make(map[string]mover.Duration)
		}
		s.AckKinds[kind] = mover.Duration(d.Duration)
	}
	return s
}

func timeout(d *v1alpha1.Duration, otherwise time.Duration) mover.Duration {
	if d == nil {
		return mover.Duration(otherwise)
	}
	return mover.Duration(d.Duration)
}
