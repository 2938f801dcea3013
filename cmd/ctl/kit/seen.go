package kit

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/cmd/ctl/connect"
)

// ErrChanged means that an object has changed since the user decided about it.
var ErrChanged = errors.New("nothing was changed")

// RefusedError rejects an action because of an object's present state. Nothing was changed.
type RefusedError struct{ error }

// Refusef returns a RefusedError.
func Refusef(format string, a ...any) error { return &RefusedError{fmt.Errorf(format, a...)} }

// Unwrap returns the error that the message wraps.
func (r *RefusedError) Unwrap() error { return errors.Unwrap(r.error) }

// Seen is the state in which a user saw an object before deciding about it. A nil Seen accepts any
// state.
type Seen struct {
	UID        types.UID
	Generation int64
	// ID is the ID in the log, or "".
	ID string
}

// Check returns ErrChanged if the object was recreated or changed after the user saw it. id is the
// object's present ID in the log.
func (s *Seen) Check(o client.Object, id string) error {
	switch {
	case s == nil:
		return nil
	case o.GetUID() != s.UID:
		return fmt.Errorf("%w: %s was deleted and created again meanwhile: its UID is %s, and was %s", ErrChanged, o.GetName(), o.GetUID(), s.UID)
	case o.GetDeletionTimestamp() != nil: // first, because a deletion also changes the generation
		return fmt.Errorf("%w: %s is being deleted", ErrChanged, o.GetName())
	case o.GetGeneration() != s.Generation:
		return fmt.Errorf("%w: the spec of %s has changed meanwhile: its generation is %d, and was %d; review it again", ErrChanged, o.GetName(), o.GetGeneration(), s.Generation)
	case id != s.ID:
		return fmt.Errorf("%w: %s is %s in the log, and was %s; review it again", ErrChanged, o.GetName(), id, s.ID)
	default:
		return nil
	}
}

// Patch returns a patch with the change since before. With a Seen, applying the patch fails if the
// object has changed on the server.
func (s *Seen) Patch(before client.Object) client.Patch {
	if s == nil {
		return client.MergeFrom(before)
	}
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}

// Permit checks whether the user may change the object. It reads the object into o, applies change
// to o, and sends the result as a dry run. Commands that only append to the log call Permit, so
// that they require the permission to change the object. id returns the object's ID in the log.
func (s *Seen) Permit(ctx context.Context, c *connect.Cluster, key types.NamespacedName, o client.Object, id func() string, change func()) error {
	if s == nil {
		return nil
	}
	if err := c.Client.Get(ctx, key, o); err != nil {
		return c.Explain(err)
	}
	if err := s.Check(o, id()); err != nil {
		return err
	}
	before, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("a copy of %T is not a resource", o)
	}
	change()
	return c.Explain(c.Client.Patch(ctx, o, s.Patch(before), client.DryRunAll))
}
