package tenant

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/client-go/rest"
)

const (
	// maxObject bounds one object, in decoded bytes. maxRead bounds the bytes that one connection of a Reader receives.
	maxObject = 512 << 10
	maxRead   = 16 << 20
)

// Reader reads objects of an API server, over connections that it keeps open until Close.
type Reader struct {
	cluster      *Cluster
	transport    *http.Transport
	roundTripper http.RoundTripper
}

// Reader returns a Reader. All its connections end with ctx, which must have a deadline.
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

// Get reads the object or list at a path, as JSON. body is nil unless the status is 200 OK. It does not follow redirects.
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
