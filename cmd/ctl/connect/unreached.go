package connect

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/nats-io/nats.go"

	"scute.dev/eventlog"
)

// ExplainConnect adds the relevant flags to an error of the connection to the NATS server.
func (f *Flags) ExplainConnect(err error) error {
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var broken *net.OpError
	var name *net.DNSError
	switch {
	case errors.Is(err, eventlog.ErrDenied):
		return fmt.Errorf("%w: log in with --nats-creds, or with --nats-cert and --nats-key; to read the log in the daemon's pod, leave out --nats", err)
	case f.URL == "":
		return err
	case errors.As(err, &authority):
		return fmt.Errorf("%w: name the authority that signed the server's certificate with --nats-ca", err)
	case errors.As(err, &host):
		return fmt.Errorf("%w: use an address in --nats that the server's certificate names", err)
	case errors.Is(err, nats.ErrNoServers), errors.As(err, &name):
		return fmt.Errorf("%w: check that a NATS server runs there, that --nats has its address and port, and that no firewall blocks the connection", err)
	case f.Cert == "" && (errors.Is(err, nats.ErrTLS) || errors.Is(err, io.EOF) || errors.As(err, &broken)):
		// With TLS 1.3, a server rejects a missing client certificate only after the handshake,
		// with an alert that may be lost.
		return fmt.Errorf("%w: if the server requires a client certificate, set --nats-cert and --nats-key", err)
	}
	return err
}
