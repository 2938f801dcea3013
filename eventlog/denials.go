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

// denials ends a request at once that the server denies. The server does not answer such a request: it sends an error of the connection,
// which names the subject and no request. So what is known is that a request on this subject was denied while this one had no answer.
type denials struct {
	mu      sync.Mutex
	waiting map[*asked]struct{}
}

// asked is a request that waits for its answer.
type asked struct {
	subject string
	end     context.CancelCauseFunc
}

// deniedError is the error of a denied request. It counts as ErrUnavailable, whatever the request was for.
type deniedError struct{ subject string }

func (e *deniedError) Error() string {
	return fmt.Sprintf("%v: publish to %q; give the user this permission, or log in as one that has it", ErrPermission, e.subject)
}

func (e *deniedError) Unwrap() []error { return []error{ErrPermission, ErrUnavailable} }

// denied matches the server's error about a request that the user may not make.
var denied = regexp.MustCompile(`(?i)permissions violation for publish to "([^"]+)"`)

// during makes a request on a subject, or on one that begins with it and a dot. It fails with ErrPermission when the server denies it.
func (d *denials) during(ctx context.Context, subject string, request func(context.Context) error) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	a := &asked{subject: subject, end: end}
	d.mu.Lock()
	if d.waiting == nil {
		d.waiting = make(map[*asked]struct{})
	}
	d.waiting[a] = struct{}{}
	d.mu.Unlock()
	err := request(ctx)
	d.mu.Lock()
	delete(d.waiting, a)
	d.mu.Unlock()
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, ErrPermission) {
		return cause
	}
	return err
}

// listen handles the denials of a connection. Other errors go to the previous handler.
func (d *denials) listen(nc *nats.Conn) {
	told := nc.ErrorHandler()
	nc.SetErrorHandler(func(nc *nats.Conn, sub *nats.Subscription, err error) {
		if !d.heard(err) && told != nil {
			told(nc, sub, err)
		}
	})
}

// heard ends the requests that a denial is about, and reports whether there are any.
func (d *denials) heard(err error) (about bool) {
	match := denied.FindStringSubmatch(err.Error())
	if match == nil || !errors.Is(err, nats.ErrPermissionViolation) {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for a := range d.waiting {
		if match[1] == a.subject || strings.HasPrefix(match[1], a.subject+".") {
			about = true
			a.end(&deniedError{subject: match[1]})
		}
	}
	return about
}
