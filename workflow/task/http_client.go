package task

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"scute.dev/kube/guard"
)

// newHTTPClient makes a client for one request. That of the daemon reaches only what the guard allows: the daemon is
// where the author of a WorkflowRun is not, beside its own log and the machine's metadata service.
func (cs *Clusters) newHTTPClient() *http.Client {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 15 * time.Second, DisableKeepAlives: true,
	}
	if cs != nil && cs.Local {
		transport.DialContext = (&net.Dialer{Timeout: dialTimeout}).DialContext
	} else {
		transport.Proxy = nil // a proxy would dial what is checked here
		transport.DialContext = cs.guard().Dialer(dialTimeout).DialContext
	}
	return &http.Client{Transport: transport, CheckRedirect: sameHost}
}

const dialTimeout = 30 * time.Second

func (cs *Clusters) guard() *guard.Guard {
	if cs == nil {
		return nil
	}
	return cs.Guard
}

// byHTTPS follows redirects that stay encrypted.
func byHTTPS(r *http.Request, via []*http.Request) error {
	if r.URL.Scheme != "https" {
		return Final(fmt.Errorf("it redirects to %s://%s, which is not encrypted", r.URL.Scheme, r.URL.Host))
	}
	if len(via) >= httpRedirects {
		return errors.New("it redirects in a circle")
	}
	return nil
}

// sameHost follows redirects that stay where the request was sent to: the headers may hold a secret.
func sameHost(r *http.Request, via []*http.Request) error {
	first := via[0].URL
	if r.URL.Host != first.Host || first.Scheme == "https" && r.URL.Scheme != "https" {
		return Final(fmt.Errorf("it redirects to %s://%s: name that in with.url if it is meant", r.URL.Scheme, r.URL.Host))
	}
	if len(via) >= httpRedirects {
		return errors.New("it redirects in a circle")
	}
	return nil
}
