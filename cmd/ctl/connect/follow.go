package connect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// FollowOptions selects the objects to follow.
type FollowOptions struct {
	// What is the name of the objects in errors: "moves", "run fleet/prod".
	What string
	// List is an empty list of the kind.
	List client.ObjectList
	// Namespace and Name select objects; "" selects all.
	Namespace, Name string
	// Notice is called when a watch breaks and is restarted, unless it is nil.
	Notice func(error)
}

// FollowFunc processes a change, and returns the version that it has processed. changed is the object after the change. It is nil at first and after a
// deletion; FollowFunc then reads the objects itself. enough ends the following, as does a permanent error (backoff.Permanent). FollowFunc is called again after
// any other error.
type FollowFunc func(changed client.Object) (version string, enough bool, err error)

// errEnough ends a watch after FollowFunc has returned enough.
var errEnough = errors.New("enough")

// errBroken is the usual end of a watch, because the server closes each watch after some minutes.
var errBroken = errors.New("the watch has ended")

// Follow calls look first, and again after each change, until look returns enough or a permanent error. It returns an error if the API server has not
// answered for two minutes.
func (c *Cluster) Follow(ctx context.Context, f FollowOptions, look FollowFunc) error {
	b := backoff.NewExponentialBackOff(backoff.WithInitialInterval(200*time.Millisecond), backoff.WithMaxInterval(5*time.Second),
		backoff.WithMaxElapsedTime(2*time.Minute))
	err := backoff.RetryNotify(func() error {
		err := c.follow(ctx, f, func(changed client.Object) (string, bool, error) {
			version, enough, err := look(changed)
			if err == nil {
				b.Reset()
			}
			if err == nil && enough {
				err = errEnough
			}
			return version, enough, err
		})
		if errors.Is(err, errEnough) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
			return backoff.Permanent(err)
		}
		return err
	}, backoff.WithContext(b, ctx), func(err error, _ time.Duration) {
		if f.Notice != nil && !errors.Is(err, errBroken) {
			f.Notice(err)
		}
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// follow calls look, and again after each change, until the server ends the watch.
func (c *Cluster) follow(ctx context.Context, f FollowOptions, look FollowFunc) error {
	version, _, err := look(nil)
	if err != nil {
		return err
	}
	list, ok := f.List.DeepCopyObject().(client.ObjectList)
	if !ok {
		return fmt.Errorf("following %s: %T is not a list", f.What, f.List)
	}
	options := &client.ListOptions{Namespace: f.Namespace, Raw: &metav1.ListOptions{ResourceVersion: version}}
	if f.Name != "" {
		options.FieldSelector = fields.OneTermEqualSelector("metadata.name", f.Name)
	}
	w, err := c.Client.Watch(ctx, list, options)
	if err != nil {
		return fmt.Errorf("watching %s: %w", f.What, c.Explain(err))
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case ev, ok := <-w.ResultChan():
			switch {
			case !ok:
				return errBroken
			case ev.Type == watch.Error:
				return fmt.Errorf("watching %s: %w", f.What, apierrors.FromObject(ev.Object))
			case ev.Type == watch.Bookmark:
				continue
			}
			changed, _ := ev.Object.(client.Object)
			if ev.Type == watch.Deleted {
				changed = nil
			}
			if _, _, err := look(changed); err != nil {
				return err
			}
		}
	}
}
