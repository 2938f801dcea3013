package tenant

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"scute.dev/kube/object"
)

// Ping returns nil if the API server responds, even with a rejection. It fails if the API server is
// not ready, or responds with a redirect or in another protocol.
func (c *Cluster) Ping(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base.JoinPath("readyz").String(), http.NoBody)
	if err != nil {
		return err
	}
	response, err := c.send(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if code := response.StatusCode; code < http.StatusOK || code/100 == 3 || code >= http.StatusInternalServerError {
		return rejectionError(response)
	}
	return nil
}

// send sends a request over a separate connection. It follows no redirects and does not decompress
// the response.
func (c *Cluster) send(request *http.Request) (*http.Response, error) {
	authenticated, err := rest.HTTPWrappersForConfig(c.config, &http.Transport{
		DialContext: func(_ context.Context, _, address string) (net.Conn, error) {
			return c.Dial(request.Context(), address)
		},
		TLSClientConfig: c.tls, MaxResponseHeaderBytes: maxHeader, DisableKeepAlives: true, DisableCompression: true,
	})
	if err != nil {
		return nil, err
	}
	return authenticated.RoundTrip(request)
}

const (
	// maxRejection limits the bytes that are read from the body of a rejection, and maxShown the
	// bytes that are shown in a message.
	maxRejection = 4 << 10
	maxShown     = 1000
)

// rejectionError returns an error with the reason why a request was rejected, according to the
// message of the API server or kubelet. It does not quote other responses, which may come from a
// server that the tenant cannot reach.
func rejectionError(response *http.Response) error {
	code := fmt.Sprintf("HTTP %d %s", response.StatusCode, http.StatusText(response.StatusCode))
	if response.StatusCode/100 == 3 {
		return errors.New("it redirects (" + code + "), which is not followed")
	}
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxRejection)) // after an error, use the part that was read
	var status metav1.Status
	text := strings.TrimSpace(string(body))
	switch {
	case json.Unmarshal(body, &status) == nil && status.Kind == "Status" && status.Message != "":
		text = status.Message
	case text == "", strings.ContainsAny(text[:1], `{[<"`):
		return errors.New(code)
	}
	return errors.New(object.Truncate(text, maxShown))
}

const (
	// maxObject limits an object, in decoded bytes. maxRead limits the bytes that are read from one
	// connection of a Reader.
	maxObject = 512 << 10
	maxRead   = 16 << 20
)

// Reader reads objects of an API server, over connections that it keeps open until Close.
type Reader struct {
	cluster      *Cluster
	transport    *http.Transport
	roundTripper http.RoundTripper
}

// Reader returns a Reader. Its connections end with ctx, which must have a deadline.
func (c *Cluster) Reader(ctx context.Context) (*Reader, error) {
	r := &Reader{cluster: c, transport: &http.Transport{
		DialContext:     func(_ context.Context, _, address string) (net.Conn, error) { return c.dial(ctx, address, maxRead) },
		TLSClientConfig: c.tls, MaxResponseHeaderBytes: maxHeader, DisableCompression: true, MaxIdleConnsPerHost: maxPerCluster,
	}}
	var err error
	r.roundTripper, err = rest.HTTPWrappersForConfig(c.config, r.transport)
	return r, err
}

// Close closes the connections.
func (r *Reader) Close() { r.transport.CloseIdleConnections() }

// Get reads the object or list at a path, as JSON. body is nil unless the status is 200 OK. It
// follows no redirects.
func (r *Reader) Get(ctx context.Context, segments ...string) (code int, body []byte, err error) {
	for _, segment := range segments {
		if wrong := content.IsPathSegmentName(segment); len(wrong) > 0 {
			return 0, nil, fmt.Errorf("%q cannot be part of a path", segment)
		}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.cluster.base.JoinPath(segments...).String(), http.NoBody)
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Accept", "application/json")
	response, err := r.roundTripper.RoundTrip(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return response.StatusCode, nil, nil
	}
	body, err = io.ReadAll(io.LimitReader(response.Body, maxObject+1))
	if err == nil && len(body) > maxObject {
		err = fmt.Errorf("%w: more than %d KiB", ErrTooLarge, maxObject>>10)
	}
	return response.StatusCode, body, err
}
