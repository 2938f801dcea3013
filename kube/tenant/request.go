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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"scute.dev/kube/object"
)

// Ping returns nil if the API server responds, even if it rejects the request. It returns an error if the API server is not ready, or if the
// response is a redirect or of another protocol, which API servers do not send.
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

// send sends a request on a separate connection. It follows no redirect and decompresses nothing.
func (c *Cluster) send(request *http.Request) (*http.Response, error) {
	return c.sendThrough(&http.Transport{
		DialContext: func(_ context.Context, _, address string) (net.Conn, error) {
			return c.Dial(request.Context(), address)
		},
		TLSClientConfig: c.tls, MaxResponseHeaderBytes: maxHeader, DisableKeepAlives: true, DisableCompression: true,
	}, request)
}

// sendThrough sends a request with the credentials of the cluster.
func (c *Cluster) sendThrough(transport http.RoundTripper, request *http.Request) (*http.Response, error) {
	authenticated, err := rest.HTTPWrappersForConfig(c.config, transport)
	if err != nil {
		return nil, err
	}
	return authenticated.RoundTrip(request)
}

const (
	// maxRejection bounds the bytes that are read of a rejection's body. maxShown bounds the part of it in a message.
	maxRejection = 4 << 10
	maxShown     = 1000
)

// rejectionError returns why a request was rejected, with the message of the API server or the kubelet if there is one. It does not quote any other
// document, because that may be the response of a server that the tenant cannot reach.
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
