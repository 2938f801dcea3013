package move

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"scute.dev/kube"
)

// targetKubeconfig returns the user's kubeconfig in self-contained form: with one context, without
// files, and without a program to run. The daemon accepts no other form.
func targetKubeconfig(path, context string) ([]byte, error) {
	config, err := clientcmd.LoadFromFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("--to-kubeconfig: there is no file %s", path)
	}
	if err != nil {
		return nil, fmt.Errorf("--to-kubeconfig: reading %s: %w", path, err)
	}
	if err := clientcmd.ResolveLocalPaths(config); err != nil {
		return nil, fmt.Errorf("--to-kubeconfig: %w", err)
	}
	there := strings.Join(slices.Sorted(maps.Keys(config.Contexts)), ", ")
	if context != "" {
		config.CurrentContext = context
	}
	switch {
	case len(config.Contexts) == 0:
		return nil, fmt.Errorf("--to-kubeconfig: %s has no context: is it a kubeconfig?", path)
	case config.CurrentContext == "":
		return nil, fmt.Errorf("--to-kubeconfig: %s has no current context: choose one with --to-context: %s", path, there)
	case config.Contexts[config.CurrentContext] == nil:
		return nil, fmt.Errorf("--to-context: %s has no context %q; it has: %s", path, config.CurrentContext, there)
	}
	if err := clientcmdapi.MinifyConfig(config); err != nil {
		return nil, fmt.Errorf("--to-kubeconfig: context %s of %s is incomplete: %w", config.CurrentContext, path, err)
	}
	if err := clientcmdapi.FlattenConfig(config); err != nil {
		return nil, fmt.Errorf("--to-kubeconfig: embedding the files that %s names: %w", path, err)
	}
	data, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("--to-kubeconfig: %w", err)
	}
	if _, err := kube.ParseKubeconfig(data); err != nil {
		return nil, fmt.Errorf("--to-kubeconfig: context %s of %s: %w; the daemon runs elsewhere and can use only what is in the file", config.CurrentContext, path, err)
	}
	return data, nil
}
