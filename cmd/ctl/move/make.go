package move

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
)

const (
	secretKey      = "value" // Cluster API's key for kubeconfigs, and the default of the Move's schema
	managedByLabel = "app.kubernetes.io/managed-by"
	managedBy      = "scutectl"
)

// checkAbsent returns an error if a Move of that name exists, because a Move is never reused.
func checkAbsent(ctx context.Context, p *session, m *v1alpha1.Move) error {
	there, err := p.Get(ctx, key(m))
	switch {
	case errors.Is(err, kit.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("move %s/%s already exists, created %s (%s): show it with %s, or choose another name",
		m.Namespace, m.Name, cli.Second(there.CreationTimestamp.Time), cmp.Or(string(there.Status.Phase), "not started yet"), p.Hint("describe", key(m)))
}

// create creates the Secret and then the Move, because the daemon refuses a Move whose Secret does
// not exist. If the Move cannot be created, create deletes the Secret.
func create(ctx context.Context, p *session, m *v1alpha1.Move, kubeconfig []byte) error {
	var secret *corev1.Secret
	if kubeconfig != nil {
		var err error
		if secret, err = createSecret(ctx, p, m, kubeconfig); err != nil {
			return err
		}
	}
	if err := p.Cluster.Client.Create(ctx, m); err != nil {
		err = fmt.Errorf("creating move %s/%s: %w", m.Namespace, m.Name, p.Cluster.Explain(err))
		if secret == nil {
			return err
		}
		if undo := client.IgnoreNotFound(p.Cluster.Client.Delete(ctx, secret, client.Preconditions{UID: &secret.UID})); undo != nil {
			err = errors.Join(err, fmt.Errorf("deleting Secret %s/%s again: %w", secret.Namespace, secret.Name, undo))
		}
		return err
	}
	if secret == nil {
		return nil
	}
	// The garbage collector deletes the credentials together with the Move.
	owned := secret.DeepCopy()
	owned.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: v1alpha1.GroupVersion().String(), Kind: "Move", Name: m.Name, UID: m.UID,
	}}
	if err := p.Cluster.Client.Patch(ctx, owned, client.MergeFrom(secret)); err != nil {
		return fmt.Errorf("move %s/%s is created, but could not be set as owner of Secret %s, so delete the Secret by hand afterwards: %w",
			m.Namespace, m.Name, secret.Name, p.Cluster.Explain(err))
	}
	return nil
}

func createSecret(ctx context.Context, p *session, m *v1alpha1.Move, kubeconfig []byte) (*corev1.Secret, error) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: m.Namespace, Name: m.Spec.Target.KubeconfigSecretRef.Name, Labels: map[string]string{managedByLabel: managedBy},
		},
		Data: map[string][]byte{secretKey: kubeconfig},
	}
	err := p.Cluster.Client.Create(ctx, secret)
	if !apierrors.IsAlreadyExists(err) {
		if err != nil {
			return nil, fmt.Errorf("creating Secret %s/%s: %w", secret.Namespace, secret.Name, p.Cluster.Explain(err))
		}
		return secret, nil
	}
	var there corev1.Secret
	if err := p.Cluster.Client.Get(ctx, client.ObjectKeyFromObject(secret), &there); err != nil {
		return nil, fmt.Errorf("reading Secret %s/%s, which already exists: %w", secret.Namespace, secret.Name, p.Cluster.Explain(err))
	}
	if there.Labels[managedByLabel] == managedBy && bytes.Equal(there.Data[secretKey], kubeconfig) {
		return &there, nil // an earlier attempt, which was interrupted, created it
	}
	return nil, fmt.Errorf("the Secret %s/%s already exists with other content: use it with --to-secret %s, choose another name for the move, or delete the Secret",
		secret.Namespace, secret.Name, secret.Name)
}
