package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"time"

	"k8s.io/client-go/rest"
)

// ErrStarting is the error of a request that an API server denied, or answered without all that it serves, before it was ready. It passes.
var ErrStarting = errors.New("the API server is not ready: it has not read its roles and definitions yet")

// ConfirmDenials has the clients of a configuration tell a denial from an API server that has just started, which denies everything.
// Then they return ErrStarting.
func ConfirmDenials(c *rest.Config) error {
	base, _, err := rest.DefaultServerUrlFor(c)
	if err != nil {
		return fmt.Errorf("reading the address %s: %w", c.Host, err)
	}
	base.Path = path.Join("/", base.Path, "readyz")
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return &sure{next: next, readyz: base} })
	return nil
}

// sure asks an API server whose authorizer denies a request whether it is ready. One that has just started denies that, too, until it has
// read its roles; so does one whose operator has taken away that everybody may ask, and then the denial is believed after a while.
type sure struct {
	next   http.RoundTripper
	readyz *url.URL
}

const (
	readyTimeout = 5 * time.Second
	// rolesTimeout is how long a server may deny everything. On a busy machine it was 120 ms.
	rolesTimeout, rolesInterval = 2 * time.Second, 100 * time.Millisecond
	// denialSize is how much of an answer is read for the words of a denial, in bytes. One with a longer user name is believed.
	denialSize = 16 << 10
)

// RoundTrip sends a request. One that was denied is sent again if the API server is ready: it may have become so in between.
func (s *sure) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := s.next.RoundTrip(r)
	if err != nil || response.StatusCode != http.StatusForbidden || !denied(response) {
		return response, err
	}
	again := r.Clone(r.Context())
	if r.Body != nil {
		if r.GetBody == nil {
			return response, nil
		}
		if again.Body, err = r.GetBody(); err != nil {
			return response, nil //nolint:nilerr // the denial is the answer
		}
	}
	switch code, err := s.awaitRoles(r); {
	case err != nil:
		_ = response.Body.Close()
		return nil, err
	case code == http.StatusOK:
		_ = response.Body.Close()
		return s.next.RoundTrip(again)
	case code >= http.StatusInternalServerError:
		_ = response.Body.Close()
		return nil, ErrStarting
	default:
		return response, nil
	}
}

// awaitRoles is the status with which the API server answers whether it is ready, or a denial that lasts.
func (s *sure) awaitRoles(denied *http.Request) (code int, err error) {
	for until := time.Now().Add(rolesTimeout); ; {
		code, err = s.ready(denied)
		if err != nil || code != http.StatusForbidden || time.Now().After(until) {
			return code, err
		}
		select {
		case <-denied.Context().Done():
			return 0, denied.Context().Err()
		case <-time.After(rolesInterval):
		}
	}
}

// denied says whether the authorizer words it. The answer can be read as before.
func denied(response *http.Response) bool {
	words, _ := io.ReadAll(io.LimitReader(response.Body, denialSize)) // who reads on meets the error again
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(words), response.Body), response.Body}
	return unauthorized.Match(words)
}

// ready is the status with which the API server answers whether it is ready.
func (s *sure) ready(denied *http.Request) (int, error) {
	ctx, cancel := context.WithTimeout(denied.Context(), readyTimeout)
	defer cancel()
	r := denied.Clone(ctx) // with the same credentials
	r.Method, r.URL, r.Body, r.GetBody, r.ContentLength = http.MethodGet, s.readyz, nil, nil, 0
	r.Header.Del("Content-Type")
	response, err := s.next.RoundTrip(r)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// ready waits for an API server that says that it is not ready. What else it says, or does not, is no reason to wait.
func (c *Cluster) ready(ctx context.Context) error {
	return c.Do(ctx, "ask whether it is ready", func(ctx context.Context) error {
		var code int
		c.discovery.RESTClient().Get().AbsPath("/readyz").Do(ctx).StatusCode(&code)
		if code >= http.StatusInternalServerError {
			return ErrStarting
		}
		return nil
	})
}
