package app

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"

	"scute.dev/export/consume"
)

// The fields of the ConfigMap.
const (
	logField      = "logID"
	sequenceField = "sequence"
	commitField   = "commit"
	sinceField    = "since"
)

// positionConfigMap stores the position of a consumer in a ConfigMap, so that the position outlives
// the pod and its volumes.
type positionConfigMap struct {
	client typed.ConfigMapInterface
	name   string
}

// Load implements consume.Store.
func (c *positionConfigMap) Load(ctx context.Context) (consume.Position, error) {
	found, err := c.client.Get(ctx, c.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return consume.Position{}, nil
	}
	if err != nil {
		return consume.Position{}, fmt.Errorf("reading the position in the event log: %w", err)
	}
	p := consume.Position{LogID: found.Data[logField], Commit: found.Data[commitField]}
	for field, into := range map[string]*uint64{sequenceField: &p.Sequence, sinceField: &p.Since} {
		text, ok := found.Data[field]
		if field == sinceField && !ok {
			continue
		}
		if *into, err = strconv.ParseUint(text, 10, 64); err != nil {
			return consume.Position{}, fmt.Errorf("reading the position in the event log from ConfigMap %s: %s must be the sequence of a commit: %w", c.name, field, err)
		}
	}
	return p, nil
}

// Save implements consume.Store.
func (c *positionConfigMap) Save(ctx context.Context, p consume.Position) error {
	data := map[string]string{logField: p.LogID, sequenceField: strconv.FormatUint(p.Sequence, 10), commitField: p.Commit}
	if p.Since > 0 {
		data[sinceField] = strconv.FormatUint(p.Since, 10)
	}
	found, err := c.client.Get(ctx, c.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = c.client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: c.name}, Data: data}, metav1.CreateOptions{})
	case err == nil:
		found.Data = data
		_, err = c.client.Update(ctx, found, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("saving the position in the event log: %w", err)
	}
	return nil
}
