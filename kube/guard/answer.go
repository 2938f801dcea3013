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

// answerLimit bounds one answer, in bytes as they are read: decompressed. etcd takes no object of more than 1.5 MiB unless it is told to.
const answerLimit = 8 << 20

// memoryLimit bounds what it takes in memory when it is decoded, and perObject and perValue are what an object and any other value of JSON
// take there at least. Short ones take 50 times as much as in the answer.
const (
	memoryLimit = 48 << 20
	perObject   = 400
	perValue    = 50
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
		response.Body = newAnswer(response.Body)
	}
	return response, err
}

// limited bounds the answers of a transport: a client keeps the whole of one in memory, and follows redirects.
type limited struct {
	next      http.RoundTripper
	room      *room
	namespace string // whose API server it is
}

// limit makes a transport's answers limited. It is the transport of one client alone: client-go shares none that has a Proxy function.
func (g *Guard) limit(next http.RoundTripper, namespace string) http.RoundTripper {
	if t, ok := next.(*http.Transport); ok {
		t.MaxResponseHeaderBytes, t.MaxIdleConnsPerHost = headerLimit, idleConnections
	}
	l := limited{next: next, namespace: namespace}
	if g != nil {
		l.room = g.room
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
	response.Body = &visitor{answer: newAnswer(response.Body), limited: l, ctx: ctx, end: end}
	return response, nil
}

// readable says whether it is JSON, or text that nobody decodes.
func readable(contentType string) bool {
	kind, _, _ := mime.ParseMediaType(contentType)
	return contentType == "" || kind == contentJSON || strings.HasPrefix(kind, "text/")
}

type answer struct {
	io.ReadCloser
	left, memory    int
	quoted, escaped bool // where the answer is, between two reads
}

func newAnswer(body io.ReadCloser) *answer {
	return &answer{ReadCloser: body, left: answerLimit, memory: memoryLimit}
}

// Read reads on, up to the limit.
func (a *answer) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if a.left -= n; a.left < 0 {
		return 0, fmt.Errorf("%w: it has more than %d MiB", ErrTooLarge, answerLimit>>20)
	}
	if a.count(p[:n]); a.memory < 0 {
		return 0, fmt.Errorf("%w: it has too many values: they take more than %d MiB", ErrTooLarge, memoryLimit>>20)
	}
	return n, err
}

// taken is what it takes until now, as it is read and decoded.
func (a *answer) taken() int { return answerLimit - a.left + memoryLimit - a.memory }

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
		case b == ',':
			a.memory -= perValue
		}
	}
}

// visitor is an answer that needs a place in the room when it is large.
type visitor struct {
	*answer
	limited

	ctx   context.Context //nolint:containedctx // that of the request, which the reading of its answer belongs to
	end   context.CancelCauseFunc
	visit *visit
	once  sync.Once
}

// Read reads on, and waits for a place when there was more than a small answer.
func (v *visitor) Read(p []byte) (int, error) {
	n, err := v.answer.Read(p)
	if cause := context.Cause(v.ctx); errors.Is(cause, ErrNoRoom) {
		return 0, cause
	}
	if v.visit == nil && v.room != nil && n > 0 && v.taken() > smallAnswer {
		visit, refused := v.room.enter(v.ctx, v.namespace, v.end)
		if refused != nil {
			return 0, refused
		}
		v.visit = visit
	}
	return n, err
}

// Close ends the answer. Its place is kept as long as it takes to decode what was read.
func (v *visitor) Close() error {
	v.once.Do(func() {
		v.end(nil)
		if v.visit != nil {
			v.room.leave(v.visit, time.Duration(v.taken()>>20)*decoding)
		}
	})
	return v.answer.Close()
}
