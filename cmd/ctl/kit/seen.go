package kit

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/cmd/ctl/connect"
)

// ErrChanged says that a resource is not what it was when something was decided about it.
var ErrChanged = errors.New("nothing was done")

// RefusedError says that something is not done because of what the resource has come to. Nothing was changed.
type RefusedError struct{ error }

// Refusef makes a RefusedError of a message.
func Refusef(format string, a ...any) error { return &RefusedError{fmt.Errorf(format, a...)} }

// Unwrap gives what the refusal wraps.
func (r *RefusedError) Unwrap() error { return errors.Unwrap(r.error) }

// Seen is the resource that a decision was made about, as it was then. nil is whatever is there.
type Seen struct {
	UID        types.UID
	Generation int64
	// ID names it in the log; "" for a resource that is not in the log.
	ID string
}

// Check refuses a resource that was made again or changed since. id names it in the log.
func (s *Seen) Check(o client.Object, id string) error {
	switch {
	case s == nil:
		return nil
	case o.GetUID() != s.UID:
		return fmt.Errorf("%w: %s was deleted and created again meanwhile: its UID is %s, and was %s", ErrChanged, o.GetName(), o.GetUID(), s.UID)
	case o.GetDeletionTimestamp() != nil: // it has another generation than before
		return fmt.Errorf("%w: %s is being deleted", ErrChanged, o.GetName())
	case o.GetGeneration() != s.Generation:
		return fmt.Errorf("%w: the spec of %s was changed meanwhile: its generation is %d, and was %d; look again", ErrChanged, o.GetName(), o.GetGeneration(), s.Generation)
	case id != s.ID:
		return fmt.Errorf("%w: %s is %s in the log, and was %s; look again", ErrChanged, o.GetName(), id, s.ID)
	default:
		return nil
	}
}

// Patch is the change since a copy was taken. Of a resource that was seen it is made only if nothing has changed meanwhile.
func (s *Seen) Patch(before client.Object) client.Patch {
	if s == nil {
		return client.MergeFrom(before)
	}
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}

// Permit has the API server say whether the user may make a change of a resource that was seen, which is read into o first, and writes
// nothing. For what is decided in the log it is the resource's permissions that count then. id names the resource in the log.
func (s *Seen) Permit(ctx context.Context, c *connect.Cluster, key types.NamespacedName, o client.Object, id func() string, change func()) error {
	if s == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, connect.CallTimeout)
	defer cancel()
	if err := c.Client.Get(ctx, key, o); err != nil {
		return c.Explain(err)
	}
	if err := s.Check(o, id()); err != nil {
		return err
	}
	before, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("a copy of %T is no resource", o)
	}
	change()
	return c.Explain(c.Client.Patch(ctx, o, s.Patch(before), client.DryRunAll))
}
