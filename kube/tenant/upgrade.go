package tenant

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	gwebsocket "github.com/gorilla/websocket"
	"k8s.io/apimachinery/pkg/util/validation"
)

// pod returns the URL of a subresource of a pod.
func (c *Cluster) pod(namespace, name, subresource string, query url.Values) (*url.URL, error) {
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return nil, fmt.Errorf("%q is not a valid pod name", name)
	}
	u := c.base.JoinPath("api", "v1", "namespaces", namespace, "pods", name, subresource)
	u.RawQuery = query.Encode()
	return u, nil
}

// refusedError is returned if the response to an upgrade request does not upgrade to the protocol.
type refusedError struct{ cause error }

func (r *refusedError) Error() string { return r.cause.Error() }

// overWebSocket opens a subresource with a WebSocket for a protocol.
func (c *Cluster) overWebSocket(ctx context.Context, u *url.URL, protocol string) (*gwebsocket.Conn, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	h := &handshakeTransport{dialer: gwebsocket.Dialer{
		NetDialContext:  func(_ context.Context, _, address string) (net.Conn, error) { return c.Dial(ctx, address) },
		TLSClientConfig: c.tls, Subprotocols: []string{protocol},
	}}
	response, err := c.sendThrough(h, request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if h.conn == nil {
		return nil, &refusedError{rejectionError(response)}
	}
	if h.conn.Subprotocol() != protocol {
		h.conn.Close()
		return nil, &refusedError{fmt.Errorf("it does not support %s", protocol)}
	}
	return h.conn, nil
}

// handshakeTransport is a WebSocket handshake as a transport, because client-go adds credentials by wrapping a transport.
type handshakeTransport struct {
	dialer gwebsocket.Dialer
	conn   *gwebsocket.Conn // nil if the handshake was rejected
}

func (h *handshakeTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	u := *r.URL
	u.Scheme = "ws" + strings.TrimPrefix(u.Scheme, "http")
	conn, response, err := h.dialer.DialContext(r.Context(), u.String(), r.Header)
	if errors.Is(err, gwebsocket.ErrBadHandshake) && response != nil {
		return response, nil
	}
	h.conn = conn
	return response, err
}

// overSPDY opens a subresource with SPDY, for streams of a protocol.
func (c *Cluster) overSPDY(ctx context.Context, u *url.URL, protocol string) (io.ReadWriteCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", "SPDY/3.1")
	request.Header.Set("X-Stream-Protocol-Version", protocol)
	response, err := c.send(request)
	if err != nil {
		return nil, err
	}
	conn, upgraded := response.Body.(io.ReadWriteCloser)
	if response.StatusCode != http.StatusSwitchingProtocols || !upgraded || !strings.EqualFold(response.Header.Get("Upgrade"), "SPDY/3.1") {
		defer response.Body.Close()
		return nil, &refusedError{rejectionError(response)}
	}
	return conn, nil
}
