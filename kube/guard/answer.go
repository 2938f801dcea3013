package guard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"

	"scute.dev/internal/fair"
)

// ErrTooLarge is wrapped by the error for a response that exceeds its limit.
var ErrTooLarge = errors.New("response too large")

// ErrRedirect is wrapped by the error for a redirect. API servers do not redirect, and the
// credentials would be sent to another server.
var ErrRedirect = errors.New("the API server redirected the request, and scute does not follow redirects")

// ErrFormat is wrapped by the error for a response that is neither JSON nor text, because the
// memory for decoding other formats is not counted.
var ErrFormat = errors.New("the API server did not respond in JSON")

// responseLimit bounds a response of an untrusted API server, in decompressed bytes. clusterctl's
// library lists all CustomResourceDefinitions at once, which may be 10 MiB.
const responseLimit = 32 << 20

// memoryLimit bounds the memory of a decoded response: at least perObject for an object, and
// perValue for any other value. Short values need 50 times their size in the response. A page of
// 500 usual objects needs 60 MiB.
const (
	memoryLimit = 128 << 20
	perObject   = 400
	perValue    = 50
)

// ErrBusy is wrapped by the error for a large response that cannot be read while others are. The
// request may be retried.
var ErrBusy = errors.New("a large response cannot be read now")

const (
	// A response above largeResponse (bytes and memory) needs a slot. Usually one is read at a
	// time. A second one may be read for a namespace that reads none, so that a slow server does
	// not block other namespaces.
	largeResponse = 1 << 20
	// maxReadTime is how long a response may keep its slot, because a server may send slowly.
	maxReadTime = 30 * time.Second
	// decodeTime is how long a slot is kept after reading, per MiB: the client decodes 50 MiB a
	// second on one core.
	decodeTime = 20 * time.Millisecond
)

// pageLimit and pageMemory bound a page of a list of any API server, because its objects may be
// large and many lists are read at once.
const (
	pageLimit  = 8 << 20
	pageMemory = 48 << 20
)

const (
	headerLimit = 64 << 10
	// Each worker of a large move needs an idle connection.
	idleConnections = 64
)

const contentJSON = "application/json"

// BoundPages bounds the pages of lists, because many are read at once and objects may be large. It
// does not bound a page of one object. On ErrTooLarge, request a smaller page.
func BoundPages(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return paged{next} })
}

type paged struct{ next http.RoundTripper }

func (p paged) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := p.next.RoundTrip(r)
	if limit := r.URL.Query().Get("limit"); err == nil && r.Method == http.MethodGet && limit != "" && limit != "1" {
		response.Body = newBoundedBody(response.Body, pageLimit, pageMemory)
	}
	return response, err
}

// limited rejects redirects and formats other than JSON and text, which API clients would follow
// and decode.
type limited struct{ next http.RoundTripper }

// limit returns a transport with the guard's limits. It may modify next, because client-go does not
// share a transport that has a Proxy function.
func (g *Guard) limit(next http.RoundTripper, namespace string) http.RoundTripper {
	if t, ok := next.(*http.Transport); ok {
		t.MaxResponseHeaderBytes, t.MaxIdleConnsPerHost = headerLimit, idleConnections
	}
	return limited{g.Bound(next, namespace, responseLimit)}
}

// RoundTrip removes unreadable formats, such as protobuf, if the client accepts several.
func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if accept := strings.Split(r.Header.Get("Accept"), ","); len(accept) > 1 {
		r.Header.Set("Accept", strings.Join(slices.DeleteFunc(accept, func(format string) bool { return !isReadable(format) }), ","))
	}
	response, err := l.next.RoundTrip(r)
	switch {
	case err != nil:
		return nil, err
	case response.StatusCode/100 == 3 && response.StatusCode != http.StatusNotModified:
		err = fmt.Errorf("%w (%d)", ErrRedirect, response.StatusCode)
	case response.StatusCode == http.StatusSwitchingProtocols && r.Header.Get("Upgrade") == "":
		err = fmt.Errorf("%w, but switched to another protocol without a request", ErrFormat)
	case !isReadable(response.Header.Get("Content-Type")):
		err = fmt.Errorf("%w, but in %.100q", ErrFormat, response.Header.Get("Content-Type"))
	default:
		return response, nil
	}
	_ = response.Body.Close()
	return nil, err
}

// Bound limits the responses of a server whose URL a user chose, in bytes and in memory. A
// namespace reads one large response at a time, and at most two namespaces read one at the same
// time. Responses of API servers count too.
func (g *Guard) Bound(next http.RoundTripper, namespace string, most int) http.RoundTripper {
	b := bounded{next: next, namespace: namespace, maxBytes: most}
	if g != nil {
		b.slots = g.slots
	}
	return b
}

// bounded bounds responses, because a client keeps a whole response in memory.
type bounded struct {
	next      http.RoundTripper
	slots     *fair.Slots
	namespace string // of the user who names the server
	maxBytes  int
}

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, end := context.WithCancelCause(r.Context())
	response, err := b.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		end(nil)
		return nil, err
	}
	if response.StatusCode == http.StatusSwitchingProtocols { // from now on it is a connection
		context.AfterFunc(ctx, func() { end(nil) })
		return response, nil
	}
	response.Body = &largeBody{boundedBody: newBoundedBody(response.Body, b.maxBytes, memoryLimit), slots: b.slots, namespace: b.namespace, ctx: ctx, end: end}
	return response, nil
}

// isReadable reports whether a content type is JSON, or text, which no client decodes.
func isReadable(contentType string) bool {
	kind, _, _ := mime.ParseMediaType(contentType)
	return contentType == "" || kind == contentJSON || strings.HasPrefix(kind, "text/")
}

type boundedBody struct {
	io.ReadCloser
	remaining, remainingMemory int
	maxBytes, maxMemory        int  // initial values
	quoted, escaped            bool // state of count between two reads
}

func newBoundedBody(body io.ReadCloser, most, memory int) *boundedBody {
	return &boundedBody{ReadCloser: body, remaining: most, maxBytes: most, remainingMemory: memory, maxMemory: memory}
}

func (a *boundedBody) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if a.remaining -= n; a.remaining < 0 {
		return 0, fmt.Errorf("%w: it has more than %d MiB", ErrTooLarge, a.maxBytes>>20)
	}
	if a.count(p[:n]); a.remainingMemory < 0 {
		return 0, fmt.Errorf("%w: it has too many values: they take more than %d MiB", ErrTooLarge, a.maxMemory>>20)
	}
	return n, err
}

func (a *boundedBody) used() int { return a.maxBytes - a.remaining + a.maxMemory - a.remainingMemory }

// count subtracts the memory of the values in a part of the response. It skips strings.
func (a *boundedBody) count(part []byte) {
	for _, b := range part {
		switch {
		case a.escaped:
			a.escaped = false
		case b == '"':
			a.quoted = !a.quoted
		case a.quoted:
			a.escaped = b == '\\'
		case b == '{':
			a.remainingMemory -= perObject
		case b == ',' || b == '[':
			a.remainingMemory -= perValue
		}
	}
}

// largeBody is a response that needs a slot once it has become large.
type largeBody struct {
	*boundedBody
	slots     *fair.Slots
	namespace string

	ctx context.Context //nolint:containedctx // the request's context, which also ends the reading of its response
	end context.CancelCauseFunc

	size atomic.Int64 // the result of used
	held bool         // has a slot
}

func (l *largeBody) Read(p []byte) (int, error) {
	n, err := l.boundedBody.Read(p)
	if cause := context.Cause(l.ctx); cause != nil { // the server may have ended the response as if complete
		return 0, cause
	}
	if l.size.Store(int64(l.used())); l.size.Load() > largeResponse && !l.held {
		if err := l.acquire(); err != nil {
			return 0, err
		}
		l.held = true
	}
	return n, err
}

// acquire waits for a slot. The slot is released after the response is closed or its request ends,
// delayed by the time that the client needs to decode the response.
func (l *largeBody) acquire() error {
	slot := l.slots.Slot(l.namespace)
	if err := slot.Acquire(l.ctx); err != nil {
		return fmt.Errorf("%w, because other large responses are being read: %w", ErrBusy, context.Cause(l.ctx))
	}
	timer := time.AfterFunc(maxReadTime, func() {
		l.end(fmt.Errorf("%w: it took more than %s, because the server or the network is slow", ErrBusy, maxReadTime))
	})
	context.AfterFunc(l.ctx, func() {
		timer.Stop()
		time.AfterFunc(time.Duration(l.size.Load()>>20)*decodeTime, slot.Release)
	})
	return nil
}

func (l *largeBody) Close() error {
	l.end(nil)
	return l.boundedBody.Close()
}
