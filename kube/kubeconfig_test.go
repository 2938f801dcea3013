package kube_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"scute.dev/kube"
)

const checkPath = `
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: "https://target.example:6443", certificate-authority-data: Q0E=}}]
users: [{name: u, user: {token: s3cr3t-t0ken}}]
`

func TestParseKubeconfig(t *testing.T) {
	config, err := kube.ParseKubeconfig([]byte(checkPath))
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://target.example:6443" || config.BearerToken != "s3cr3t-t0ken" || string(config.CAData) != "CA" {
		t.Errorf("host = %s", config.Host)
	}
}

// TestParseKubeconfigRefuses checks that a kubeconfig is rejected that would run a program, read a local file, or
// cannot be used, with an error that does not quote it.
func TestParseKubeconfigRefuses(t *testing.T) {
	with := func(old, by string) string {
		if !strings.Contains(checkPath, old) {
			t.Fatalf("%q is not in the kubeconfig", old)
		}
		return strings.Replace(checkPath, old, by, 1)
	}
	key := base64.StdEncoding.EncodeToString([]byte("s3cr3t-t0ken"))
	for name, c := range map[string]struct{ text, says string }{
		"exec":                  {with("{token: s3cr3t-t0ken}", "{exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/sh, args: [s3cr3t-t0ken], interactiveMode: Never}}"), "runs a program"},
		"exec of another user":  {with("users: [", "users: [{name: v, user: {exec: {command: x, apiVersion: client.authentication.k8s.io/v1}}}, "), `"v"`},
		"auth provider":         {with("{token: s3cr3t-t0ken}", "{auth-provider: {name: gcp, config: {access-token: s3cr3t-t0ken}}}"), "runs a program"},
		"token file":            {with("{token: s3cr3t-t0ken}", "{tokenFile: /etc/s3cr3t}"), "names a file"},
		"client certificate":    {with("{token: s3cr3t-t0ken}", "{client-certificate: /etc/s3cr3t, client-key-data: "+key+"}"), "names a file"},
		"client key":            {with("{token: s3cr3t-t0ken}", "{client-key: /etc/s3cr3t}"), "names a file"},
		"certificate authority": {with("certificate-authority-data: Q0E=", "certificate-authority: /etc/s3cr3t"), "names a file"},
		"proxy":                 {with("certificate-authority-data: Q0E=", `certificate-authority-data: Q0E=, proxy-url: "http://s3cr3t.example:3128"`), "has a proxy-url"},
		"garbage":               {"s3cr3t-t0ken", "cannot be parsed"},
		"not yaml":              {"\x00s3cr3t: [", "cannot be parsed"},
		"bad base64":            {with("certificate-authority-data: Q0E=", "certificate-authority-data: s3cr3t!"), "cannot be parsed"},
		"empty":                 {"", ""},
		"large":                 {checkPath + "# " + strings.Repeat("s3cr3t", 1<<18), "more than 1 MiB"},
		"aliases":               {checkPath + "x: &a " + strings.Repeat("z", 100<<10) + "\ny: [" + strings.Repeat("*a,", 3000) + "]\n", "aliases"},
		"many values":           {checkPath + "x: [" + strings.Repeat("0,", 200_000) + "]\n", "values"},
		"no such context":       {with("current-context: c", "current-context: d"), ""},
		"no such cluster":       {with("cluster: k,", "cluster: other,"), ""},
		"no server":             {with(`server: "https://target.example:6443", `, ""), ""},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := kube.ParseKubeconfig([]byte(c.text))
			if err == nil {
				t.Fatalf("accepted with host %s", config.Host)
			}
			if !errors.Is(err, kube.ErrKubeconfig) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error = %v, want ErrKubeconfig with %q", err, c.says)
			}
			for _, secret := range []string{"s3cr3t", key} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("the error quotes the content: %v", err)
				}
			}
		})
	}
}

// TestProtected checks that only encrypted and verified connections are accepted, because they transfer keys of
// clusters.
func TestProtected(t *testing.T) {
	for server, says := range map[string]string{
		`server: "https://x", certificate-authority-data: Q0E=`: "",
		`server: "https://x"`: "",
		`server: "http://x"`:  "uses http",
		`server: "http://x", certificate-authority-data: Q0E=`: "uses http",
		`server: "x:6443"`: "uses http",
		`server: "https://x", insecure-skip-tls-verify: true`: "insecure-skip-tls-verify",
	} {
		text := strings.Replace(checkPath, `server: "https://target.example:6443", certificate-authority-data: Q0E=`, server, 1)
		config, err := kube.ParseKubeconfig([]byte(text))
		if err != nil {
			t.Fatalf("ParseKubeconfig with %s = %v", server, err)
		}
		if err := kube.CheckTransportSecurity(config); (err == nil) != (says == "") || err != nil && (!errors.Is(err, kube.ErrKubeconfig) || !strings.Contains(err.Error(), says)) {
			t.Errorf("CheckTransportSecurity with %s = %v, want %q", server, err, says)
		}
	}
}
