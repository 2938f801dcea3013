package resource

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
)

type readable interface {
	client.Object
	Parts() v1alpha1.Unreadable
}

// Publish sets the condition Readable in list, the conditions of after, and writes the status with
// Write. It records an event if the object has become unreadable.
func Publish(ctx context.Context, c client.Client, recorder events.EventRecorder, before, after readable, list *[]metav1.Condition) (written bool, err error) {
	parts := before.Parts()
	conditions, fresh := withReadable(*list, before.GetGeneration(), parts)
	*list = conditions
	if written, err = Write(ctx, c, before, after); written && fresh {
		recorder.Eventf(after, nil, corev1.EventTypeWarning, Unreadable, "Read", "%s", TruncateNote(parts.Unread().String()))
	}
	return written, err
}

// Write patches the status, the only part that may have changed. written is false if the object is
// gone or if both statuses are stored as the same, because times are stored in whole seconds.
func Write(ctx context.Context, c client.Client, before, after client.Object) (written bool, err error) {
	patch, err := client.MergeFrom(before).Data(after)
	if err == nil && string(patch) == "{}" {
		return false, nil
	}
	if err == nil {
		err = c.Status().Patch(ctx, after, client.RawPatch(types.MergePatchType, patch))
	}
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("writing the status: %w", err)
	}
	return err == nil, nil
}
