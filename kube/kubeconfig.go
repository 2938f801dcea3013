package kube

import (
	"errors"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// ErrKubeconfig: a kubeconfig that scute will not use.
var ErrKubeconfig = errors.New("kubeconfig not usable")

// ParseKubeconfig reads a kubeconfig that somebody else wrote, as from a Secret. What would make scute run a command or
// read a file of its own machine for the writer is refused: exec plugins, auth providers, and paths.
func ParseKubeconfig(data []byte) (*rest.Config, error) {
	config, err := clientcmd.Load(data)
	if err != nil {
		return nil, fmt.Errorf("%w: it cannot be parsed (the content is not shown)", ErrKubeconfig)
	}
	for name, user := range config.AuthInfos {
		switch {
		case user.Exec != nil || user.AuthProvider != nil:
			return nil, fmt.Errorf("%w: user %q runs a program to log in: use a token or a client certificate", ErrKubeconfig, name)
		case user.TokenFile != "" || user.ClientCertificate != "" || user.ClientKey != "":
			return nil, fmt.Errorf("%w: user %q names a file: embed its content (kubectl config view --flatten)", ErrKubeconfig, name)
		}
	}
	for name, cluster := range config.Clusters {
		if cluster.CertificateAuthority != "" {
			return nil, fmt.Errorf("%w: cluster %q names a file: embed its content (kubectl config view --flatten)", ErrKubeconfig, name)
		}
	}
	rest, err := clientcmd.NewDefaultClientConfig(*config, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		// The cause may quote a URL with a password in it.
		return nil, fmt.Errorf("%w: its current context %q names no usable cluster and user", ErrKubeconfig, config.CurrentContext)
	}
	return rest, nil
}
