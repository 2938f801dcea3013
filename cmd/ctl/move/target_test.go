package move

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scute.dev/kube"
)

const twoContexts = `apiVersion: v1
kind: Config
current-context: a
contexts: [{name: a, context: {cluster: ka, user: ua}}, {name: b, context: {cluster: kb, user: ub}}]
clusters:
- {name: ka, cluster: {server: "https://a.example", certificate-authority: ca.crt}}
- {name: kb, cluster: {server: "https://b.example"}}
users: [{name: ua, user: {token: secret-a}}, {name: ub, user: {token: secret-b}}]
`

func TestTargetKubeconfigStandsByItself(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "kubeconfig")
	for name, content := range map[string]string{"kubeconfig": twoContexts, "ca.crt": "a certificate"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for context, want := range map[string]string{"": "https://a.example", "b": "https://b.example"} {
		data, err := targetKubeconfig(path, context)
		if err != nil {
			t.Fatal(err)
		}
		config, err := kube.ParseKubeconfig(data)
		if err != nil || config.Host != want {
			t.Errorf("context %q: got %v, %v", context, config, err)
		}
		other := map[string]string{"": "secret-b", "b": "secret-a"}[context]
		if strings.Contains(string(data), other) {
			t.Errorf("context %q: the kubeconfig contains credentials of another context", context)
		}
	}
	data, err := targetKubeconfig(path, "")
	if err != nil || strings.Contains(string(data), "ca.crt") || !strings.Contains(string(data), "certificate-authority-data") {
		t.Errorf("the certificate is not embedded: %s, %v", data, err)
	}
}
