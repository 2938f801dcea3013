package scuted

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
)

// Client returns an administrator's client of the side that knows scute's resources.
func (in *Installation) Client() (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	return client.New(in.Side.Config(), client.Options{Scheme: scheme})
}

// PutTarget creates a Secret with the kubeconfig of another side, for Moves of a namespace.
func (in *Installation) PutTarget(ctx context.Context, namespace string, to *Installation) error {
	c, err := in.Client()
	if err != nil {
		return err
	}
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: to.Side.Name()},
		Data:       map[string][]byte{"value": to.Target},
	}
	if err := client.IgnoreAlreadyExists(c.Create(ctx, s)); err != nil {
		return fmt.Errorf("writing the kubeconfig of %s on %s: %w", to.Side.Name(), in.Side.Name(), err)
	}
	return nil
}

// NewMove returns a Move of clusters to another side. It does not create it.
func NewMove(namespace, name string, to *Installation, clusters ...string) *v1alpha1.Move {
	return &v1alpha1.Move{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.MoveSpec{
			Target:    v1alpha1.MoveTarget{KubeconfigSecretRef: v1alpha1.SecretKeyRef{Name: to.Side.Name()}},
			Selection: v1alpha1.MoveSelection{Clusters: clusters},
		},
	}
}

// Create creates a Move.
func (in *Installation) Create(ctx context.Context, m *v1alpha1.Move) error {
	c, err := in.Client()
	if err != nil {
		return err
	}
	return c.Create(ctx, m)
}

// Wait polls a Move until done returns true. The error has the Move's last status.
func (in *Installation) Wait(ctx context.Context, namespace, name string, done func(*v1alpha1.Move) bool) (*v1alpha1.Move, error) {
	c, err := in.Client()
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	m := &v1alpha1.Move{}
	var last error
	for {
		if last = c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, m); last == nil && done(m) {
			return m, nil
		}
		select {
		case <-ctx.Done():
			return m, fmt.Errorf("waiting for Move %s/%s: %w: phase %q, %s, waiting for %v",
				namespace, name, errors.Join(ctx.Err(), last), m.Status.Phase, m.Status.Message, m.Status.WaitingFor)
		case <-tick.C:
		}
	}
}

// Over reports whether a Move has ended, in any phase.
func Over(m *v1alpha1.Move) bool { return m.Status.FinishedAt != nil }
