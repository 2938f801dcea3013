package access

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"scute.dev/kube/guard"
	"scute.dev/workflow/task"
)

// HTTPClient returns a client for one request of a task. In the daemon it connects only to
// addresses that the guard allows, because the author of a WorkflowRun must not reach the daemon's
// log or the machine's metadata service. HTTP/2 is disabled, because its client buffers several MiB
// of unread data.
func (cs *Clusters) HTTPClient() *http.Client {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: 15 * time.Second, DisableKeepAlives: true, MaxResponseHeaderBytes: headerLimit,
	}
	if cs.IsLocal() {
		transport.DialContext = (&net.Dialer{Timeout: dialTimeout}).DialContext
	} else {
		var allowed *guard.Guard
		if cs != nil {
			allowed = cs.Guard
		}
		transport.Proxy = nil // a proxy would connect without the guard's checks
		transport.DialContext = allowed.Dialer(dialTimeout).DialContext
	}
	return &http.Client{Transport: transport, CheckRedirect: sameHost}
}

const (
	dialTimeout = 30 * time.Second
	// headerLimit limits the header of a response, in bytes.
	headerLimit  = 64 << 10
	maxRedirects = 10
)

// HTTPSOnly rejects a redirect to a URL that is not https.
func HTTPSOnly(r *http.Request, via []*http.Request) error {
	if r.URL.Scheme != "https" {
		return task.Final(fmt.Errorf("it redirects to %s://%s, which is not encrypted", r.URL.Scheme, r.URL.Host))
	}
	if len(via) >= maxRedirects {
		return errors.New("too many redirects")
	}
	return nil
}

// sameHost rejects a redirect to another host, because the headers may contain a secret.
func sameHost(r *http.Request, via []*http.Request) error {
	first := via[0].URL
	if r.URL.Host != first.Host || first.Scheme == "https" && r.URL.Scheme != "https" {
		return task.Final(fmt.Errorf("it redirects to %s://%s: use that address in with.url if it is intended", r.URL.Scheme, r.URL.Host))
	}
	if len(via) >= maxRedirects {
		return errors.New("too many redirects")
	}
	return nil
}

// DescribeRequest returns the method and the URL of a request for messages. It omits the query,
// which may contain a key.
func DescribeRequest(r *http.Request) string {
	u := url.URL{Scheme: r.URL.Scheme, Host: r.URL.Host, Path: r.URL.Path}
	return r.Method + " " + u.String()
}

// RequestError returns the error of a request without the URL that package http adds.
func RequestError(r *http.Request, err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return fmt.Errorf("%s: %w", DescribeRequest(r), err)
}
