package eventlog

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
)

// denials cancels requests that the server denies. The server does not answer a denied request.
// Instead it reports an error on the connection, which names only the subject. denials therefore
// cancels all pending requests on this subject.
type denials struct {
	mu      sync.Mutex
	pending map[*pendingRequest]struct{}
}

type pendingRequest struct {
	subject string
	cancel  context.CancelCauseFunc
}

// deniedError matches ErrPermission and ErrUnavailable, for every kind of request.
type deniedError struct{ subject string }

func (e *deniedError) Error() string {
	return fmt.Sprintf("%v: publish to %q; give the user this permission, or log in as one that has it", ErrPermission, e.subject)
}

func (e *deniedError) Unwrap() []error { return []error{ErrPermission, ErrUnavailable} }

var denialPattern = regexp.MustCompile(`(?i)permissions violation for publish to "([^"]+)"`)

// run runs a request on the subject, or on a subject below it. It fails with ErrPermission if the
// server denies the request.
func (d *denials) run(ctx context.Context, subject string, request func(context.Context) error) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	a := &pendingRequest{subject: subject, cancel: end}
	d.mu.Lock()
	if d.pending == nil {
		d.pending = make(map[*pendingRequest]struct{})
	}
	d.pending[a] = struct{}{}
	d.mu.Unlock()
	err := request(ctx)
	d.mu.Lock()
	delete(d.pending, a)
	d.mu.Unlock()
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, ErrPermission) {
		return cause
	}
	return err
}

// listen handles the connection's errors about denied requests. It passes all other errors to the
// previous handler.
func (d *denials) listen(nc *nats.Conn) {
	told := nc.ErrorHandler()
	nc.SetErrorHandler(func(nc *nats.Conn, sub *nats.Subscription, err error) {
		if !d.cancelMatching(err) && told != nil {
			told(nc, sub, err)
		}
	})
}

// cancelMatching cancels the pending requests that the error denies, and reports whether there were
// any.
func (d *denials) cancelMatching(err error) (about bool) {
	match := denialPattern.FindStringSubmatch(err.Error())
	if match == nil || !errors.Is(err, nats.ErrPermissionViolation) {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for a := range d.pending {
		if match[1] == a.subject || strings.HasPrefix(match[1], a.subject+".") {
			about = true
			a.cancel(&deniedError{subject: match[1]})
		}
	}
	return about
}
