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
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// ErrTooLarge is wrapped by the error of reading a response that exceeds its limit.
var ErrTooLarge = errors.New("response too large")

// ErrRedirect is wrapped by the error of a request whose response is a redirect. API servers do not redirect, and the request's credentials would be
// sent to another server.
var ErrRedirect = errors.New("the API server redirected the request, and scute does not follow redirects")

// ErrFormat is wrapped by the error of a request whose response is neither JSON nor text, because the memory for decoding other formats is not
// counted.
var ErrFormat = errors.New("the API server did not respond in JSON")

// responseLimit bounds one response of an untrusted API server, in decompressed bytes. The library of clusterctl lists all CustomResourceDefinitions at
// once, which may be 10 MiB.
const responseLimit = 64 << 20

// memoryLimit bounds the memory of a decoded response. perObject and perValue are the least memory of an object and of any other JSON value. Short
// values need 50 times their size in the response. A page of 500 objects of a usual size needs 60 MiB.
const (
	memoryLimit = 192 << 20
	perObject   = 400
	perValue    = 50
)

// pageLimit and pageMemory bound a page of a list of any API server in the same way, because its objects may be large and many lists are read at
// once.
const (
	pageLimit  = 8 << 20
	pageMemory = 48 << 20
)

const (
	// headerLimit bounds the header of a response, in bytes.
	headerLimit = 64 << 10
	// idleConnections bounds the idle connections to an API server that are kept. Each worker of a large move needs one.
	idleConnections = 64
)

const contentJSON = "application/json"

// BoundPages bounds the pages of lists of any API server, because many lists are read at once and their objects may be large. It does not bound a
// page of one object. A caller that gets ErrTooLarge requests a smaller page.
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

// limited rejects responses of an API server that its clients must not read, because they follow redirects and decode several formats.
type limited struct{ next http.RoundTripper }

// limit limits the responses of a transport. It may change the transport, because client-go does not share a transport that has a Proxy function.
func (g *Guard) limit(next http.RoundTripper, namespace string) http.RoundTripper {
	if t, ok := next.(*http.Transport); ok {
		t.MaxResponseHeaderBytes, t.MaxIdleConnsPerHost = headerLimit, idleConnections
	}
	return limited{g.Bound(next, namespace, responseLimit)}
}

// RoundTrip sends a request. If the client accepts several formats, it removes those that are not readable, such as protobuf.
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

// Bound bounds the responses of a server with a URL from a user, in bytes and in the memory of their values. Only a few large responses are read at a
// time, of servers and API servers together, and namespaces take turns.
func (g *Guard) Bound(next http.RoundTripper, namespace string, most int) http.RoundTripper {
	b := bounded{next: next, namespace: namespace, maxBytes: most}
	if g != nil {
		b.pools = g.pools
	}
	return b
}

// bounded bounds the responses of a transport, because a client keeps a whole response in memory.
type bounded struct {
	next      http.RoundTripper
	pools     []*pool
	namespace string // the namespace of the user who names the server
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
	response.Body = &pooledBody{boundedBody: newBoundedBody(response.Body, b.maxBytes, memoryLimit), pools: b.pools, namespace: b.namespace, ctx: ctx, end: end}
	return response, nil
}

// isReadable reports whether a content type is JSON, or text that no client decodes.
func isReadable(contentType string) bool {
	kind, _, _ := mime.ParseMediaType(contentType)
	return contentType == "" || kind == contentJSON || strings.HasPrefix(kind, "text/")
}

type boundedBody struct {
	io.ReadCloser
	remaining, remainingMemory int
	maxBytes, maxMemory        int  // the initial values of left and memory
	quoted, escaped            bool // the state of count between two reads
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

// used returns the bytes that were read, plus the memory of their values.
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

// pooledBody is a response that needs a slot in a pool when it is large.
type pooledBody struct {
	*boundedBody

	pools     []*pool
	namespace string

	ctx context.Context //nolint:containedctx // the request's context, which also ends the reading of its response
	end context.CancelCauseFunc

	mu       sync.Mutex
	size     int     // the result of taken
	slots    []*slot // by the index of the pool
	complete bool    // it was read to the end
	closed   bool
}

// Read reads from the response. It waits for a slot in a pool when the response has become large.
func (v *pooledBody) Read(p []byte) (int, error) {
	n, err := v.boundedBody.Read(p)
	if cause := context.Cause(v.ctx); cause != nil { // if the connection is closed, a server may end its response as if it were complete
		return 0, cause
	}
	v.mu.Lock()
	v.size, v.complete = v.used(), errors.Is(err, io.EOF)
	next := v.pools[len(v.slots):]
	v.mu.Unlock()
	for _, r := range next {
		if v.size <= r.threshold {
			break
		}
		if err := v.acquire(r); err != nil {
			return 0, err
		}
	}
	return n, err
}

// acquire waits for a slot in a pool. Meanwhile the time limits of its slots in other pools are
// suspended.
func (v *pooledBody) acquire(r *pool) error {
	v.mu.Lock()
	before := slices.Clone(v.slots)
	v.mu.Unlock()
	for i, visit := range before {
		v.pools[i].suspendTimer(visit)
	}
	visit, err := r.acquire(v.ctx, v.namespace, v.end)
	for i, visit := range before {
		v.pools[i].resumeTimer(visit)
	}
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		r.release(visit)
		return http.ErrBodyReadAfterClose
	}
	v.slots = append(v.slots, visit)
	return nil
}

// Close closes the response. It keeps the slot of a complete response until the client has decoded
// it.
func (v *pooledBody) Close() error {
	v.mu.Lock()
	if !v.closed {
		v.closed = true
		var needed time.Duration
		if v.complete {
			needed = time.Duration(v.size>>20) * decodeGrace
		}
		for i, visit := range v.slots {
			v.pools[i].releaseAfter(visit, needed)
		}
		v.end(nil)
	}
	v.mu.Unlock()
	return v.boundedBody.Close()
}
