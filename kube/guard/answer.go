package guard

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// ErrTooLarge is the cause of the error with which the reading of an answer ends that has no end in sight.
var ErrTooLarge = errors.New("answer too large")

// ErrRedirect is the cause of the error of a request that is answered by a redirect. No API server does so, and the credentials
// of one would be sent elsewhere.
var ErrRedirect = errors.New("the API server redirects, which is not followed")

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

// limited bounds the answers of a transport: a client keeps the whole of one in memory, and follows redirects.
type limited struct{ next http.RoundTripper }

// RoundTrip sends a request.
func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := l.next.RoundTrip(r)
	if err == nil && response.StatusCode/100 == 3 && response.StatusCode != http.StatusNotModified {
		_ = response.Body.Close()
		return nil, fmt.Errorf("%w (%d)", ErrRedirect, response.StatusCode)
	}
	if err == nil && response.StatusCode != http.StatusSwitchingProtocols { // that is a connection from then on
		response.Body = &answer{ReadCloser: response.Body, left: answerLimit, memory: memoryLimit}
	}
	return response, err
}

type answer struct {
	io.ReadCloser
	left, memory int
}

// Read reads on, up to the limit.
func (a *answer) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if a.left -= n; a.left < 0 {
		return 0, fmt.Errorf("%w: it has more than %d MiB", ErrTooLarge, answerLimit>>20)
	}
	a.memory -= perObject*bytes.Count(p[:n], []byte("{")) + perValue*bytes.Count(p[:n], []byte(","))
	if a.memory < 0 {
		return 0, fmt.Errorf("%w: it has too many values: they take more than %d MiB", ErrTooLarge, memoryLimit>>20)
	}
	return n, err
}
