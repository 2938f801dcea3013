package providers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"scute.dev/kube/document"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// reader is clusterctl's configuration in memory: a clusterctl.yaml, overridden by variables of a
// Secret. Only a local run falls back to the environment.
type reader struct {
	values       map[string]any
	local        bool
	secretValues []string
}

// Init does nothing, because the configuration is complete.
func (r *reader) Init(context.Context, string) error { return nil }

func (r *reader) Get(key string) (string, error) {
	if v, ok := r.values[key]; ok && v != nil {
		return fmt.Sprint(v), nil
	}
	if v, ok := os.LookupEnv(key); ok && r.local {
		return v, nil
	}
	return "", fmt.Errorf("variable %s is not set: set it in with.config or in the Secret of with.variablesFrom", key)
}

func (r *reader) Set(key, value string) { r.values[key] = value }

func (r *reader) UnmarshalKey(key string, into any) error {
	v, ok := r.values[key]
	if !ok {
		return nil
	}
	if text, ok := v.(string); ok {
		return document.Unmarshal([]byte(text), into)
	}
	data, err := yaml.Marshal(v)
	if err != nil {
		return fmt.Errorf("reading %s of the configuration: %w", key, err)
	}
	return document.Unmarshal(data, into)
}

func (p *Kind) reader(ctx context.Context, c *task.Call, w *With) (*reader, error) {
	r := &reader{values: make(map[string]any), local: p.Clusters.Local}
	if w == nil {
		return r, nil
	}
	if w.ConfigFile != "" {
		data, err := os.ReadFile(w.ConfigFile)
		if err != nil {
			return nil, fmt.Errorf("with.configFile: %w", err)
		}
		if err := document.Unmarshal(data, &r.values); errors.Is(err, document.ErrTooLarge) {
			return nil, task.Final(fmt.Errorf("with.configFile: %s is %w", w.ConfigFile, err))
		} else if err != nil {
			return nil, task.Final(fmt.Errorf("with.configFile: %s is not YAML (the content is not shown)", w.ConfigFile))
		}
	}
	maps.Copy(r.values, w.Config)
	if w.VariablesFrom == nil {
		return r, nil
	}
	ref := w.VariablesFrom.SecretRef
	if ref.Namespace != "" && ref.Namespace != c.Namespace && !p.Clusters.Local {
		return nil, task.Final(errors.New("with.variablesFrom.secretRef.namespace: only a local run can use another namespace"))
	}
	own, err := p.Clusters.Open(ctx, c, access.ClusterRef{})
	if err != nil {
		return nil, err
	}
	name := types.NamespacedName{Namespace: cmp.Or(ref.Namespace, c.Namespace), Name: ref.Name}
	variables, err := own.Data(ctx, "Secret", name)
	if err != nil {
		return nil, fmt.Errorf("with.variablesFrom: %w", err)
	}
	for key, value := range variables {
		if ref.Key == "" || ref.Key == key {
			if key == overridesKey && !p.Clusters.Local || key == "providers" || key == "cert-manager" || key == "images" {
				continue // a configuration key, not a variable
			}
			r.values[key] = string(value)
			r.secretValues = append(r.secretValues, string(value))
		}
	}
	return r, nil
}

// writeKubeconfig writes a kubeconfig file, because clusterctl's library can only read a file. Only
// the user of this process can read the file. If the process crashes, the next attempt deletes the
// file.
func writeKubeconfig(c *task.Call, config *rest.Config) (path string, remove func(), err error) {
	user := &clientcmdapi.AuthInfo{
		Token: config.BearerToken, TokenFile: config.BearerTokenFile, Username: config.Username, Password: config.Password,
		ClientCertificate: config.CertFile, ClientCertificateData: config.CertData, ClientKey: config.KeyFile, ClientKeyData: config.KeyData,
		Impersonate: config.Impersonate.UserName, ImpersonateUID: config.Impersonate.UID,
		ImpersonateGroups: config.Impersonate.Groups, ImpersonateUserExtra: config.Impersonate.Extra,
		Exec: config.ExecProvider, AuthProvider: config.AuthProvider,
	}
	if user.TokenFile != "" {
		user.Token = "" // the token file has the newer token
	}
	cluster := &clientcmdapi.Cluster{
		Server: config.Host + config.APIPath, TLSServerName: config.ServerName, InsecureSkipTLSVerify: config.Insecure,
		CertificateAuthority: config.CAFile, CertificateAuthorityData: config.CAData,
	}
	data, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": cluster}, AuthInfos: map[string]*clientcmdapi.AuthInfo{"u": user},
		Contexts: map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}}, CurrentContext: "x",
	})
	if err != nil {
		return "", nil, fmt.Errorf("writing a kubeconfig: %w", err)
	}
	prefix := "scute-providers-" + task.Hash(c.Dir+"\x00"+c.Key()) + "-"
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*")); err == nil {
		for _, dir := range left {
			os.RemoveAll(dir)
		}
	}
	dir, err := os.MkdirTemp("", prefix)
	if err != nil {
		return "", nil, fmt.Errorf("writing a kubeconfig: %w", err)
	}
	remove = func() { os.RemoveAll(dir) }
	path = dir + "/kubeconfig"
	if err := os.WriteFile(path, data, 0o600); err != nil {
		remove()
		return "", nil, fmt.Errorf("writing a kubeconfig: %w", err)
	}
	return path, remove, nil
}
