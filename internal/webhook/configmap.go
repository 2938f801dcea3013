package webhook

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"

	"scute.dev/eventlog/consume"
)

// The fields of the ConfigMap.
const (
	logField      = "logID"
	sequenceField = "sequence"
	commitField   = "commit"
)

// ConfigMap keeps the position of the delivery in the management cluster, so that it outlives the pod and its volumes.
type ConfigMap struct {
	Client typed.ConfigMapInterface
	Object string
}

// Load implements consume.Store.
func (c *ConfigMap) Load(ctx context.Context) (consume.Position, error) {
	found, err := c.Client.Get(ctx, c.Object, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return consume.Position{}, nil
	}
	if err != nil {
		return consume.Position{}, fmt.Errorf("reading the position of the webhook: %w", err)
	}
	seq, err := strconv.ParseUint(found.Data[sequenceField], 10, 64)
	if err != nil {
		return consume.Position{}, fmt.Errorf("reading the position of the webhook from ConfigMap %s: %s must be the sequence of a commit: %w", c.Object, sequenceField, err)
	}
	return consume.Position{LogID: found.Data[logField], Sequence: seq, Commit: found.Data[commitField]}, nil
}

// Save implements consume.Store.
func (c *ConfigMap) Save(ctx context.Context, p consume.Position) error {
	data := map[string]string{logField: p.LogID, sequenceField: strconv.FormatUint(p.Sequence, 10), commitField: p.Commit}
	found, err := c.Client.Get(ctx, c.Object, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = c.Client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: c.Object}, Data: data}, metav1.CreateOptions{})
	case err == nil:
		found.Data = data
		_, err = c.Client.Update(ctx, found, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("saving the position of the webhook: %w", err)
	}
	return nil
}
