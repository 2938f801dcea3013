package guard

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

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

// answerLimit bounds one answer of somebody's API server, in bytes as they are read: decompressed. A page of 500 objects of
// a usual size is a few MiB.
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

const contentJSON = "application/json"

// BoundPages bounds the pages of lists, but not a page of one object: who gets ErrTooLarge asks for fewer at once.
func BoundPages(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return paged{next} })
}

type paged struct{ next http.RoundTripper }

// RoundTrip sends a request.
func (p paged) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := p.next.RoundTrip(r)
	if limit := r.URL.Query().Get("limit"); err == nil && r.Method == http.MethodGet && limit != "" && limit != "1" {
		response.Body = &answer{ReadCloser: response.Body, left: pageLimit, most: pageLimit, memory: pageMemory, mostMemory: pageMemory}
	}
	return response, err
}

// limited bounds the answers of a transport: a client keeps the whole of one in memory, and follows redirects.
type limited struct{ next http.RoundTripper }

// RoundTrip sends a request. A client that takes JSON or protobuf is to get JSON.
func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	if accept := strings.Split(r.Header.Get("Accept"), ","); len(accept) > 1 {
		r = r.Clone(r.Context())
		r.Header.Set("Accept", strings.Join(slices.DeleteFunc(accept, func(format string) bool { return !readable(format) }), ","))
	}
	response, err := l.next.RoundTrip(r)
	if err == nil && response.StatusCode/100 == 3 && response.StatusCode != http.StatusNotModified {
		_ = response.Body.Close()
		return nil, fmt.Errorf("%w (%d)", ErrRedirect, response.StatusCode)
	}
	if err == nil && !readable(response.Header.Get("Content-Type")) {
		_ = response.Body.Close()
		return nil, fmt.Errorf("%w, but in %.100q", ErrFormat, response.Header.Get("Content-Type"))
	}
	if err == nil && response.StatusCode != http.StatusSwitchingProtocols { // that is a connection from then on
		response.Body = &answer{ReadCloser: response.Body, left: answerLimit, most: answerLimit, memory: memoryLimit, mostMemory: memoryLimit}
	}
	return response, err
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
