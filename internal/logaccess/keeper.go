package logaccess

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"

	"scute.dev/eventlog/embedded"
	"scute.dev/internal/sleep"
)

const (
	// retryInterval is the wait after a failure, and watchInterval the wait after a watch has
	// ended.
	retryInterval, watchInterval = 10 * time.Second, time.Second
	// callTimeout is the timeout of a request, and watchTimeout the timeout of a watch.
	callTimeout, watchTimeout = 20 * time.Second, 5 * time.Minute
)

// Keeper sets the tokens of a log's listener from Secrets. It creates a missing Secret with a
// random token, so users change a token by deleting its Secret.
type Keeper struct {
	Secrets Secrets
	// Client accesses the Secrets of the namespace.
	Client typed.SecretInterface
	// Set is called with the token of a role; "" disables the role.
	Set    func(role embedded.Role, token string)
	Logger *slog.Logger
}

// Run keeps the tokens of all roles up to date until ctx ends. If a Secret cannot be read, its last
// token remains valid.
func (k *Keeper) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, role := range embedded.Roles() {
		running.Go(func() { k.syncRole(ctx, role) })
	}
	running.Wait()
}

func (k *Keeper) syncRole(ctx context.Context, role embedded.Role) {
	var had string
	for ctx.Err() == nil {
		secret, err := k.getOrCreate(ctx, role)
		if err == nil {
			token, invalid := Token(secret.Data) // without a valid token, the role is disabled
			if token != had {
				k.Set(role, token)
				k.Logger.Info("the token of the listener of the event log has changed", "role", role, "secret", k.Secrets.Namespace+"/"+secret.Name)
				had = token
			}
			if invalid != nil {
				k.Logger.Warn("no role can use the listener of the event log", "role", role, "secret", k.Secrets.Namespace+"/"+secret.Name, "error", invalid)
			}
			err = k.waitForChange(ctx, secret)
		}
		if err == nil || ctx.Err() != nil {
			continue
		}
		k.Logger.Warn("updating the token of the listener of the event log failed; retrying", "role", role, "error", err)
		_ = sleep.For(ctx, retryInterval) // fails when ctx has ended
	}
}

func (k *Keeper) getOrCreate(ctx context.Context, role embedded.Role) (*corev1.Secret, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	name := k.Secrets.NameFor(role)
	found, err := k.Client.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		found, err = k.Client.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{label: string(role)}},
			Data:       map[string][]byte{field: []byte(rand.Text())},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s/%s: %w", k.Secrets.Namespace, name, err)
	}
	return found, nil
}

func (k *Keeper) waitForChange(ctx context.Context, secret *corev1.Secret) error {
	seconds := int64(watchTimeout.Seconds())
	w, err := k.Client.Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", secret.Name).String(), ResourceVersion: secret.ResourceVersion, TimeoutSeconds: &seconds,
	})
	if err != nil {
		return fmt.Errorf("watching Secret %s/%s: %w", k.Secrets.Namespace, secret.Name, err)
	}
	defer w.Stop()
	select {
	case <-ctx.Done():
	case event, ok := <-w.ResultChan():
		if ok && event.Type != watch.Error {
			return nil
		}
		// The watch has ended, or the API server no longer has the resource version.
		_ = sleep.For(ctx, watchInterval) // fails when ctx has ended
	}
	return nil
}
