package providers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"time"

	"k8s.io/client-go/rest"
)

const relayHeaderTimeout = 10 * time.Second

// relay starts on this machine a proxy for an API server, because clusterctl's library accepts
// neither a dialer nor a transport. The proxy forwards requests with the guard and the credentials
// of config. Its path is random, so that only this process can use it. It rejects redirects, which
// the library would follow without a check.
//
// After each response, relay calls cut: with nil if the response was complete, and with an error if
// it ended early. The library notices the latter only as a closed connection.
func relay(config *rest.Config, cut func(error)) (served *rest.Config, stop func(), err error) {
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the server's address: %w", err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, nil, fmt.Errorf("preparing the connection to %s: %w", config.Host, err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, fmt.Errorf("listening for clusterctl's library: %w", err)
	}
	quiet := slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	path := "/" + rand.Text()
	forward := http.StripPrefix(path, &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(server) },
		Transport: transport,
		ErrorLog:  quiet,
		ModifyResponse: func(r *http.Response) error {
			if r.StatusCode/100 == 3 && r.StatusCode != http.StatusNotModified {
				return fmt.Errorf("the API server redirects (%s), and scute does not follow redirects", r.Status)
			}
			if r.StatusCode != http.StatusSwitchingProtocols {
				r.Body = &relayBody{ReadCloser: r.Body, onEnd: cut}
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
	})
	s := &http.Server{Handler: forward, ReadHeaderTimeout: relayHeaderTimeout, ErrorLog: quiet}
	go func() { _ = s.Serve(listener) }() // runs until the listener is closed
	return &rest.Config{Host: "http://" + listener.Addr().String() + path}, func() { s.Close() }, nil
}

type relayBody struct {
	io.ReadCloser
	onEnd func(error)
}

func (r *relayBody) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	switch {
	case errors.Is(err, io.EOF):
		r.onEnd(nil)
	case err != nil && !errors.Is(err, context.Canceled):
		r.onEnd(err)
	}
	return n, err
}
