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

// ErrStarting is the error of a request that an API server denied, or answered incompletely, before
// it was ready. It is transient.
var ErrStarting = errors.New("the API server is not ready: it has not read its roles and definitions yet")

// confirmDenials makes clients return ErrStarting for denials of an API server that is not ready.
func confirmDenials(c *rest.Config) error {
	base, _, err := rest.DefaultServerUrlFor(c)
	if err != nil {
		return fmt.Errorf("reading the address %s: %w", c.Host, err)
	}
	base.Path = path.Join("/", base.Path, "readyz")
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return &denialConfirmer{next: next, readyz: base} })
	return nil
}

// denialConfirmer checks /readyz after a denial: an API server that has just started denies
// everything, even this check, until it has read its roles. An API server without public access to
// /readyz always denies the check, so the denial counts after a timeout.
type denialConfirmer struct {
	next   http.RoundTripper
	readyz *url.URL
}

const (
	readyTimeout = 5 * time.Second
	// rolesTimeout is how long the check may be denied before the denial counts. On a busy machine
	// the roles were read after 120 ms.
	rolesTimeout, rolesInterval = 2 * time.Second, 100 * time.Millisecond
	// denialSize is how much of a response is searched for a denial, in bytes. A denial with a
	// longer user name counts.
	denialSize = 16 << 10
)

// RoundTrip sends a request. If the request is denied and the API server is ready, it sends the
// request again, because the API server may have become ready after the denial.
func (s *denialConfirmer) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := s.next.RoundTrip(r)
	if err != nil || response.StatusCode != http.StatusForbidden || !isDenial(response) {
		return response, err
	}
	again := r.Clone(r.Context())
	if r.Body != nil {
		if r.GetBody == nil {
			return response, nil
		}
		if again.Body, err = r.GetBody(); err != nil {
			return response, nil //nolint:nilerr // the denial is the response
		}
	}
	switch code, err := s.waitForRoles(r); {
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

// waitForRoles returns the status code of /readyz. It returns a denial only after rolesTimeout, and
// repeats the request before that.
func (s *denialConfirmer) waitForRoles(denied *http.Request) (code int, err error) {
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

// isDenial reports whether a response is an authorizer's denial. It leaves the body readable from
// its beginning.
func isDenial(response *http.Response) bool {
	words, _ := io.ReadAll(io.LimitReader(response.Body, denialSize)) // a later read returns the error again
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(words), response.Body), response.Body}
	return unauthorized.Match(words)
}

func (s *denialConfirmer) ready(denied *http.Request) (int, error) {
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

// waitReady waits while the API server reports that it is not ready. It returns for any other
// response, and if there is none.
func (c *Cluster) waitReady(ctx context.Context) error {
	return c.Do(ctx, "ask whether it is ready", func(ctx context.Context) error {
		var code int
		c.discovery.RESTClient().Get().AbsPath("/readyz").Do(ctx).StatusCode(&code)
		if code >= http.StatusInternalServerError {
			return ErrStarting
		}
		return nil
	})
}
