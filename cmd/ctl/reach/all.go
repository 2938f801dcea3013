package reach

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// All are the objects of a kind.
type All struct {
	// What they are called in errors: "moves".
	What string
	// List of the kind.
	List      client.ObjectList
	Namespace string // "" for all
	// Notice is told when a watch breaks and is taken up again; nil tells nobody.
	Notice func(error)
}

// FollowAll calls look at first, and again after each change, until it says that it has seen enough or fails. look returns
// the version of the list that it has seen. It gives up when the API server has not answered for two minutes.
func (c *Cluster) FollowAll(ctx context.Context, all All, look func() (version string, enough bool, err error)) error {
	b := backoff.NewExponentialBackOff(backoff.WithInitialInterval(200*time.Millisecond), backoff.WithMaxInterval(5*time.Second),
		backoff.WithMaxElapsedTime(2*time.Minute))
	err := backoff.RetryNotify(func() error {
		err := c.followAll(ctx, all, func() (string, bool, error) {
			version, enough, err := look()
			if err == nil {
				b.Reset()
			}
			return version, enough, err
		})
		if errors.Is(err, errEnough) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
			return backoff.Permanent(err)
		}
		return err
	}, backoff.WithContext(b, ctx), func(err error, _ time.Duration) {
		if all.Notice != nil && !errors.Is(err, errBroken) {
			all.Notice(err)
		}
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// followAll looks, and looks again whenever something has changed, until the server ends the watch.
func (c *Cluster) followAll(ctx context.Context, all All, look func() (string, bool, error)) error {
	version, enough, err := look()
	if err != nil {
		return err
	}
	if enough {
		return errEnough
	}
	list, ok := all.List.DeepCopyObject().(client.ObjectList)
	if !ok {
		return fmt.Errorf("following %s: %T is no list", all.What, all.List)
	}
	w, err := c.Client.Watch(ctx, list, &client.ListOptions{Namespace: all.Namespace, Raw: &metav1.ListOptions{ResourceVersion: version}})
	if err != nil {
		return fmt.Errorf("watching %s: %w", all.What, c.Explain(err))
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
				return fmt.Errorf("watching %s: %w", all.What, apierrors.FromObject(ev.Object))
			case ev.Type == watch.Bookmark:
				continue
			}
			if _, enough, err := look(); err != nil || enough {
				return errors.Join(err, enoughOf(enough))
			}
		}
	}
}

func enoughOf(enough bool) error {
	if enough {
		return errEnough
	}
	return nil
}
