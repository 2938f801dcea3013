package tenant

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

func (c *Cluster) pod(namespace, name, subresource string, query url.Values) (*url.URL, error) {
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return nil, fmt.Errorf("%q is not a valid pod name", name)
	}
	u := c.base.JoinPath("api", "v1", "namespaces", namespace, "pods", name, subresource)
	u.RawQuery = query.Encode()
	return u, nil
}

func (c *Cluster) upgrade(ctx context.Context, u *url.URL, protocol string) (io.ReadWriteCloser, error) {
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
		return nil, rejectionError(response)
	}
	return conn, nil
}
