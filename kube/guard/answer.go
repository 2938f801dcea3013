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

// ErrTooLarge is the cause of the error with which the reading of an answer ends that has no end in sight.
var ErrTooLarge = errors.New("answer too large")

// ErrRedirect is the cause of the error of a request that is answered by a redirect. No API server does so, and the credentials
// of one would be sent elsewhere.
var ErrRedirect = errors.New("the API server redirects, which is not followed")

// ErrFormat is the cause of the error of a request that is answered in another format than JSON, or text: a client would decode it, and what that
// takes in memory is not counted.
var ErrFormat = errors.New("the API server does not answer in JSON")

// answerLimit bounds one answer of somebody's API server, in bytes as they are read: decompressed. The library of clusterctl lists all
// CustomResourceDefinitions at once, which may be 10 MiB.
const answerLimit = 64 << 20

// memoryLimit bounds what it takes in memory when it is decoded, and perObject and perValue are what an object and any other value of JSON
// take there at least. Short ones take 50 times as much as in the answer; a page of 500 objects of a usual size takes 60 MiB.
const (
	memoryLimit = 192 << 20
	perObject   = 400
	perValue    = 50
)

// pageLimit and pageMemory bound a page of a list in the same way, of any API server: the objects in it may be large, and many lists are read at once.
const (
	pageLimit  = 8 << 20
	pageMemory = 48 << 20
)

const (
	// headerLimit bounds the header of an answer, in bytes.
	headerLimit = 64 << 10
	// idleConnections to an API server are kept: as many as a large move has workers, which need one each.
	idleConnections = 64
)

const contentJSON = "application/json"

// BoundPages bounds the pages of lists, of any API server, but not a page of one object: many are read at once, and the objects may be large. Who
// gets ErrTooLarge asks for fewer.
func BoundPages(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return paged{next} })
}

type paged struct{ next http.RoundTripper }

// RoundTrip sends a request.
func (p paged) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := p.next.RoundTrip(r)
	if limit := r.URL.Query().Get("limit"); err == nil && r.Method == http.MethodGet && limit != "" && limit != "1" {
		response.Body = newAnswer(response.Body, pageLimit, pageMemory)
	}
	return response, err
}

// limited bounds the answers of a transport: a client keeps the whole of one in memory, and follows redirects.
type limited struct {
	next      http.RoundTripper
	rooms     []*room
	namespace string // whose API server it is
}

// limit makes a transport's answers limited. It is the transport of one client alone: client-go shares none that has a Proxy function.
func (g *Guard) limit(next http.RoundTripper, namespace string) http.RoundTripper {
	if t, ok := next.(*http.Transport); ok {
		t.MaxResponseHeaderBytes, t.MaxIdleConnsPerHost = headerLimit, idleConnections
	}
	l := limited{next: next, namespace: namespace}
	if g != nil {
		l.rooms = g.rooms
	}
	return l
}

// RoundTrip sends a request. A client that takes JSON or protobuf is to get JSON.
func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, end := context.WithCancelCause(r.Context())
	r = r.Clone(ctx)
	if accept := strings.Split(r.Header.Get("Accept"), ","); len(accept) > 1 {
		r.Header.Set("Accept", strings.Join(slices.DeleteFunc(accept, func(format string) bool { return !readable(format) }), ","))
	}
	response, err := l.next.RoundTrip(r)
	if err == nil && response.StatusCode/100 == 3 && response.StatusCode != http.StatusNotModified {
		_ = response.Body.Close()
		err = fmt.Errorf("%w (%d)", ErrRedirect, response.StatusCode)
	}
	if err == nil && response.StatusCode == http.StatusSwitchingProtocols && r.Header.Get("Upgrade") == "" {
		_ = response.Body.Close()
		err = fmt.Errorf("%w, but in another protocol, which it was not asked for", ErrFormat)
	}
	if err == nil && !readable(response.Header.Get("Content-Type")) {
		_ = response.Body.Close()
		err = fmt.Errorf("%w, but in %.100q", ErrFormat, response.Header.Get("Content-Type"))
	}
	if err != nil {
		end(nil)
		return nil, err
	}
	if response.StatusCode == http.StatusSwitchingProtocols { // it is a connection from then on
		context.AfterFunc(ctx, func() { end(nil) })
		return response, nil
	}
	response.Body = &visitor{answer: newAnswer(response.Body, answerLimit, memoryLimit), rooms: l.rooms, namespace: l.namespace, ctx: ctx, end: end}
	return response, nil
}

// Bound bounds the answers of a server that somebody has named to a number of bytes, and to what their values take in memory. Namespaces take
// turns with large ones, of which few are read at a time, together with those of API servers.
func (g *Guard) Bound(next http.RoundTripper, namespace string, most int) http.RoundTripper {
	b := bounded{limited: limited{next: next, namespace: namespace}, most: most}
	if g != nil {
		b.rooms = g.rooms
	}
	return b
}

type bounded struct {
	limited
	most int
}

// RoundTrip sends a request.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, end := context.WithCancelCause(r.Context())
	response, err := b.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		end(nil)
		return nil, err
	}
	response.Body = &visitor{answer: newAnswer(response.Body, b.most, memoryLimit), rooms: b.rooms, namespace: b.namespace, ctx: ctx, end: end}
	return response, nil
}

// readable says whether it is JSON, or text that nobody decodes.
func readable(contentType string) bool {
	kind, _, _ := mime.ParseMediaType(contentType)
	return contentType == "" || kind == contentJSON || strings.HasPrefix(kind, "text/")
}

type answer struct {
	io.ReadCloser
	left, memory     int
	most, mostMemory int  // that were left at the beginning
	quoted, escaped  bool // where the answer is, between two reads
}

func newAnswer(body io.ReadCloser, most, memory int) *answer {
	return &answer{ReadCloser: body, left: most, most: most, memory: memory, mostMemory: memory}
}

// Read reads on, up to the limit.
func (a *answer) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if a.left -= n; a.left < 0 {
		return 0, fmt.Errorf("%w: it has more than %d MiB", ErrTooLarge, a.most>>20)
	}
	if a.count(p[:n]); a.memory < 0 {
		return 0, fmt.Errorf("%w: it has too many values: they take more than %d MiB", ErrTooLarge, a.mostMemory>>20)
	}
	return n, err
}

// taken is what it takes until now, as it is read and decoded.
func (a *answer) taken() int { return a.most - a.left + a.mostMemory - a.memory }

// count counts the values, but not what looks like some in a text.
func (a *answer) count(part []byte) {
	for _, b := range part {
		switch {
		case a.escaped:
			a.escaped = false
		case b == '"':
			a.quoted = !a.quoted
		case a.quoted:
			a.escaped = b == '\\'
		case b == '{':
			a.memory -= perObject
		case b == ',' || b == '[':
			a.memory -= perValue
		}
	}
}

// visitor is an answer that needs a place in a room when it is large.
type visitor struct {
	*answer

	rooms     []*room
	namespace string

	ctx context.Context //nolint:containedctx // that of the request, which the reading of its answer belongs to
	end context.CancelCauseFunc

	mu     sync.Mutex
	size   int      // what it has taken
	visits []*visit // by the room
	whole  bool     // it was read to its end
	closed bool
}

// Read reads on, and waits for a place when there was more than a small answer.
func (v *visitor) Read(p []byte) (int, error) {
	n, err := v.answer.Read(p)
	if cause := context.Cause(v.ctx); cause != nil { // a server that sees the connection end may end its answer as if it were whole
		return 0, cause
	}
	v.mu.Lock()
	v.size, v.whole = v.taken(), errors.Is(err, io.EOF)
	next := v.rooms[len(v.visits):]
	v.mu.Unlock()
	for _, r := range next {
		if v.size <= r.above {
			break
		}
		if err := v.enter(r); err != nil {
			return 0, err
		}
	}
	return n, err
}

// enter waits for a place in a room. That takes none of the time that it has in those where it is.
func (v *visitor) enter(r *room) error {
	v.mu.Lock()
	before := slices.Clone(v.visits)
	v.mu.Unlock()
	for i, visit := range before {
		v.rooms[i].rest(visit)
	}
	visit, err := r.enter(v.ctx, v.namespace, v.end)
	for i, visit := range before {
		v.rooms[i].resume(visit)
	}
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		r.leave(visit)
		return http.ErrBodyReadAfterClose
	}
	v.visits = append(v.visits, visit)
	return nil
}

// Close ends the answer. The place of a whole one is kept as long as it takes to decode it.
func (v *visitor) Close() error {
	v.mu.Lock()
	if !v.closed {
		v.closed = true
		var needed time.Duration
		if v.whole {
			needed = time.Duration(v.size>>20) * decoding
		}
		for i, visit := range v.visits {
			v.rooms[i].leaveAfter(visit, needed)
		}
		v.end(nil)
	}
	v.mu.Unlock()
	return v.answer.Close()
}
