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

// Answers is nil when the API server answers: one that says that it is not ready does not, one that refuses us does. A
// redirect, or another protocol, is none of an API server's answers.
func (c *Cluster) Answers(ctx context.Context) error {
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
		return refusal(response)
	}
	return nil
}

// send makes one request on a separate connection. It follows no redirect, and decompresses nothing.
func (c *Cluster) send(request *http.Request) (*http.Response, error) {
	return c.with(&http.Transport{
		DialContext: func(_ context.Context, _, address string) (net.Conn, error) {
			return c.Dial(request.Context(), address)
		},
		TLSClientConfig: c.tls, MaxResponseHeaderBytes: mostHeader, DisableKeepAlives: true, DisableCompression: true,
	}, request)
}

// with sends a request with the credentials of the cluster.
func (c *Cluster) with(transport http.RoundTripper, request *http.Request) (*http.Response, error) {
	authenticated, err := rest.HTTPWrappersForConfig(c.config, transport)
	if err != nil {
		return nil, err
	}
	return authenticated.RoundTrip(request)
}

const (
	// mostRefusal bounds what is read of the body of a refusal, mostShown what is shown of it.
	mostRefusal = 4 << 10
	mostShown   = 1000
)

// refusal says why a request was refused: in the words of the API server or the kubelet, where they are such. Another
// document is not shown, it may be the answer of somebody whom the caller could not ask.
func refusal(response *http.Response) error {
	code := fmt.Sprintf("HTTP %d %s", response.StatusCode, http.StatusText(response.StatusCode))
	if response.StatusCode/100 == 3 {
		return errors.New("it redirects (" + code + "), which is not followed")
	}
	body, _ := io.ReadAll(io.LimitReader(response.Body, mostRefusal)) // what came before an error is what there is
	var status metav1.Status
	text := strings.TrimSpace(string(body))
	switch {
	case json.Unmarshal(body, &status) == nil && status.Kind == "Status" && status.Message != "":
		text = status.Message
	case text == "", strings.ContainsAny(text[:1], `{[<"`):
		return errors.New(code)
	}
	return errors.New(object.Brief(text, mostShown))
}
