package providers

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	ctlconfig "sigs.k8s.io/cluster-api/cmd/clusterctl/client/config"

	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// TestProvidersReadsByHTTPS checks that the daemon refuses URLs, in any form, that would make it read a file or send
// its environment to a host.
func TestProvidersReadsByHTTPS(t *testing.T) {
	daemon := &Kind{Clusters: &access.Clusters{}}
	for config, says := range map[string]string{
		`{"providers": [{"name": "toy", "url": "file:///etc/toy/v1.0.0/c.yaml"}]}`:                        "config.providers[0].url",
		`{"providers": [{"name": "toy", "URL": "file:///etc/toy/v1.0.0/c.yaml"}]}`:                        "config.providers[0].url",
		`{"providers": "[{name: toy, url: /etc/toy/v1.0.0/c.yaml}]"}`:                                     "config.providers[0].url",
		`{"providers": "[{name: toy, url: 'https://gitlab.example.com/${HOME}'}]"}`:                       "config.providers[0].url",
		`{"providers": "${tasks.a.output.providers}"}`:                                                    "is not a list of providers",
		`{"cert-manager": {"URL": "file:///etc/cert-manager/v1.0.0/c.yaml"}}`:                             "config.cert-manager.url",
		`{"cert-manager": "url: file:///etc/cert-manager/v1.0.0/c.yaml"}`:                                 "config.cert-manager.url",
		`{"cert-manager": {"url": "http://169.254.169.254/latest"}}`:                                      "config.cert-manager.url",
		`{"providers": [{"name": "toy", "url": "https://github.com/o/toy/releases/v1.0.0/c.yaml"}]}`:      "",
		`{"cert-manager": {"url": "https://github.com/o/c/releases/v1.0.0/c.yaml", "version": "v1.0.0"}}`: "",
	} {
		problems := daemon.Validate(json.RawMessage(`{"core": "cluster-api:v1.14.2", "config": ` + config + `}`))
		if says == "" && len(problems) > 0 || says != "" && (len(problems) == 0 || !strings.Contains(problems[0].String(), says)) {
			t.Errorf("%s: problems %v, want %q", config, problems, says)
		}
	}
	for _, url := range []string{
		"file:///etc/toy/v1.0.0/c.yaml", "/etc/toy/v1.0.0/c.yaml", "http://example.com/c.yaml", "https://example.com/c.yaml", "https://u:p@gitlab.example.com/api/v4/projects/1/packages/generic/p/v1/c.yaml",
		"https://github.com/o/toy/v1.0.0/c.yaml", "https://u:p@github.com/o/toy/releases/v1.0.0/c.yaml",
	} {
		_, err := daemon.repositories("tenant")(t.Context(), ctlconfig.NewProvider("toy", url, clusterctlv1.InfrastructureProviderType), nil)
		if !task.IsFinal(err) || !strings.Contains(err.Error(), "with.config") {
			t.Errorf("%s: %v, want a final error", url, err)
		}
	}
}

func TestProvidersReadsNothingOfTheMachine(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the daemon's own machine was requested") }))
	defer server.Close()
	_, err := gitLabRepository{packages: server.URL + "/api/v4/projects/1/packages/generic/p"}.GetFile(t.Context(), "v1.0.0", "c.yaml")
	if !task.IsFinal(err) || !strings.Contains(err.Error(), "--allow-addresses") {
		t.Errorf("GetFile = %v, want a final error with advice", err)
	}
}

// TestKubeconfigFile checks that an attempt removes the files of its predecessors, which may have been killed, and no
// others.
func TestKubeconfigFile(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	call := &task.Call{Run: "run/1", Task: "providers"}
	config := &rest.Config{Host: "https://127.0.0.1:1", BearerToken: "s3cr3t"}
	left, _, err := writeKubeconfig(call, config)
	if err != nil {
		t.Fatal(err)
	}
	others, _, err := writeKubeconfig(&task.Call{Run: "run/2", Task: "providers"}, config)
	if err != nil {
		t.Fatal(err)
	}
	path, remove, err := writeKubeconfig(call, config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("file of the earlier attempt: %v, want none", err)
	}
	for _, p := range []string{others, path} {
		if info, err := os.Stat(p); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, error %v", p, info, err)
		}
	}
	remove()
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("file after the attempt: %v, want none", err)
	}
}
