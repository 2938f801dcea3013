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

// denials ends a request as soon as the server denies it. The server does not answer such a
// request: it sends an error of the connection, which names the subject and not the request. So
// denials ends all requests on this subject that have no answer yet.
type denials struct {
	mu      sync.Mutex
	pending map[*pendingRequest]struct{}
}

// pendingRequest is a request without an answer yet.
type pendingRequest struct {
	subject string
	cancel  context.CancelCauseFunc
}

// deniedError is the error of a denied request. It matches ErrUnavailable for every kind of request.
type deniedError struct{ subject string }

func (e *deniedError) Error() string {
	return fmt.Sprintf("%v: publish to %q; give the user this permission, or log in as one that has it", ErrPermission, e.subject)
}

func (e *deniedError) Unwrap() []error { return []error{ErrPermission, ErrUnavailable} }

// denialPattern matches the server's error for a request that the user may not make.
var denialPattern = regexp.MustCompile(`(?i)permissions violation for publish to "([^"]+)"`)

// run runs a request on a subject, or on a subject that begins with it and a dot. It fails with
// ErrPermission if the server denies the request.
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

// listen handles the denials of a connection. It passes other errors to the previous handler.
func (d *denials) listen(nc *nats.Conn) {
	told := nc.ErrorHandler()
	nc.SetErrorHandler(func(nc *nats.Conn, sub *nats.Subscription, err error) {
		if !d.cancelMatching(err) && told != nil {
			told(nc, sub, err)
		}
	})
}

// cancelMatching ends the requests that match a denial, and reports whether there are any.
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
