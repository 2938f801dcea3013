package remediation

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"scute.dev/remediator/ownerkind"
)

// updatedIf returns a predicate that accepts an update only if it made a relevant change. Statuses are written often and mostly without a change, which
// must not cause a reconciliation.
func updatedIf[T client.Object](differs func(before, after T) bool) predicate.TypedPredicate[T] {
	return predicate.TypedFuncs[T]{UpdateFunc: func(e event.TypedUpdateEvent[T]) bool {
		return metadataDiffers(e.ObjectOld, e.ObjectNew) || differs(e.ObjectOld, e.ObjectNew)
	}}
}

func metadataDiffers(a, b client.Object) bool {
	return a.GetUID() != b.GetUID() || a.GetGeneration() != b.GetGeneration() || a.GetDeletionTimestamp().IsZero() != b.GetDeletionTimestamp().IsZero() ||
		!maps.Equal(a.GetAnnotations(), b.GetAnnotations()) || !maps.Equal(a.GetLabels(), b.GetLabels()) ||
		!slices.EqualFunc(a.GetOwnerReferences(), b.GetOwnerReferences(), func(x, y metav1.OwnerReference) bool { return x.UID == y.UID })
}

func machineDiffers(a, b *clusterv1.Machine) bool {
	return a.Status.NodeRef != b.Status.NodeRef || a.Status.FailureDomain != b.Status.FailureDomain || a.Status.Phase != b.Status.Phase ||
		conditionsDiffer(a.Status.Conditions, b.Status.Conditions)
}

// ownerDiffers compares owners of machines.
func ownerDiffers(a, b client.Object) bool {
	x, known := ownerkind.As(a)
	y, alike := ownerkind.As(b)
	return !known || !alike || x.ObservedGeneration() != y.ObservedGeneration() || conditionsDiffer(x.GetConditions(), y.GetConditions())
}

func clusterDiffers(a, b *clusterv1.Cluster) bool {
	return !equality.Semantic.DeepEqual(a.Status.FailureDomains, b.Status.FailureDomains)
}

// neverDiffers reports no difference, for kinds whose status is irrelevant.
func neverDiffers[T client.Object](T, T) bool { return false }

// conditionsDiffer compares the fields that decisions use, without the messages, whose counts and names change all the time.
func conditionsDiffer(a, b []metav1.Condition) bool {
	return !slices.EqualFunc(a, b, func(x, y metav1.Condition) bool {
		return x.Type == y.Type && x.Status == y.Status && x.Reason == y.Reason && x.LastTransitionTime.Equal(&y.LastTransitionTime)
	})
}
