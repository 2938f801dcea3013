package tenant

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

const (
	// mostObject bounds one object, decoded by who asks for it. mostRead bounds what one connection of a Reader brings in.
	mostObject = 512 << 10
	mostRead   = 16 << 20
)

// Reader reads objects of an API server, and patches them, over connections that it keeps until it is closed.
type Reader struct {
	cluster   *Cluster
	transport *http.Transport
	through   http.RoundTripper
}

// Reader makes one. All its connections end with ctx, which must have a deadline.
func (c *Cluster) Reader(ctx context.Context) (*Reader, error) {
	r := &Reader{cluster: c, transport: &http.Transport{
		DialContext:     func(_ context.Context, _, address string) (net.Conn, error) { return c.dial(ctx, address, mostRead) },
		TLSClientConfig: c.tls, MaxResponseHeaderBytes: mostHeader, DisableCompression: true, MaxIdleConnsPerHost: perCluster,
	}}
	var err error
	r.through, err = rest.HTTPWrappersForConfig(c.config, r.transport)
	return r, err
}

// Close closes the connections.
func (r *Reader) Close() { r.transport.CloseIdleConnections() }

// Get reads what is at a path, as JSON. The body is that of an answer that is OK; a redirect is not followed.
func (r *Reader) Get(ctx context.Context, segments ...string) (code int, body []byte, err error) {
	response, err := r.ask(ctx, http.MethodGet, http.NoBody, segments)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return response.StatusCode, nil, nil
	}
	body, err = io.ReadAll(io.LimitReader(response.Body, mostObject+1))
	if err == nil && len(body) > mostObject {
		err = fmt.Errorf("%w: more than %d KiB", ErrTooMuch, mostObject>>10)
	}
	return response.StatusCode, body, err
}

// Patch changes what is at a path by a JSON merge patch, unless nothing may be changed. A redirect is not followed, and the answer is not
// read.
func (r *Reader) Patch(ctx context.Context, patch []byte, segments ...string) (code int, err error) {
	if err := r.cluster.Held(); err != nil {
		return 0, err
	}
	response, err := r.ask(ctx, http.MethodPatch, bytes.NewReader(patch), segments)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

func (r *Reader) ask(ctx context.Context, method string, body io.Reader, segments []string) (*http.Response, error) {
	for _, segment := range segments {
		if wrong := content.IsPathSegmentName(segment); len(wrong) > 0 {
			return nil, fmt.Errorf("%q cannot be part of a path", segment)
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, r.cluster.base.JoinPath(segments...).String(), body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", string(types.MergePatchType))
	}
	return r.through.RoundTrip(request)
}
