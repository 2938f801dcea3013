package chart_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// uiArgs are the arguments of the daemon about its pages.
func uiArgs(pod corev1.PodSpec) (args []string) {
	for _, arg := range pod.Containers[0].Args {
		if strings.HasPrefix(arg, "--ui-") {
			args = append(args, arg)
		}
	}
	return args
}

// TestPagesAreOff unless they are asked for: no argument, no permission and no Service is theirs.
func TestPagesAreOff(t *testing.T) {
	r := render(t, "ui.port=9000", "ui.tlsSecretName=pages")
	if args := uiArgs(r.daemon().Spec); len(args) > 0 || len(r.services) > 0 || slices.ContainsFunc(r.clusterRoles, func(c rbacv1.ClusterRole) bool { return c.Name == "scute-ui" }) {
		t.Errorf("%v, %d Services", args, len(r.services))
	}
}

// TestPages: by default they listen where a port-forward ends, and nothing else reaches them; with a certificate, or where it is said that
// something before them ends TLS, a Service leads to them.
func TestPages(t *testing.T) {
	common := []string{"--ui-dir=/var/lib/scute-ui", "--ui-max-bytes=241591910", "--ui-session=12h"}
	for name, c := range map[string]struct {
		values, args []string
		service      string
	}{
		"default": {nil, append([]string{"--ui-address=127.0.0.1:8082"}, common...), ""},
		"TLS": {
			[]string{"ui.tlsSecretName=pages", "ui.port=8443", "ui.audiences[0]=scute-ui"},
			slices.Concat([]string{"--ui-address=:8443"}, common, []string{"--ui-tls-cert=/etc/scute/ui-tls/tls.crt", "--ui-tls-key=/etc/scute/ui-tls/tls.key", "--ui-audiences=scute-ui"}), "https 8443",
		},
		"Ingress": {
			[]string{"ui.plainHTTP=true", "ui.hosts[0]=scute.example.com", "ui.sizeLimit=512Mi"},
			[]string{"--ui-address=:8082", "--ui-dir=/var/lib/scute-ui", "--ui-max-bytes=483183820", "--ui-session=12h", "--ui-plain-http", "--ui-hosts=scute.example.com"},
			"http 8082",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := render(t, append(c.values, "ui.enabled=true")...)
			pod := r.daemon().Spec
			wantRestricted(t, pod)
			if diff := cmp.Diff(c.args, uiArgs(pod)); diff != "" {
				t.Errorf("arguments (-want +got):\n%s", diff)
			}
			service := ""
			for _, s := range r.services {
				port := s.Spec.Ports[0]
				service = fmt.Sprintf("%s %d", port.Name, containerPort(pod, port.TargetPort.String()))
				if s.Spec.SessionAffinity != corev1.ServiceAffinityClientIP || s.Name != "scute-ui" {
					t.Errorf("Service %s with affinity %s", s.Name, s.Spec.SessionAffinity)
				}
			}
			if service != c.service {
				t.Errorf("the Service leads to %q, want %q", service, c.service)
			}
			if got, want := slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Secret != nil && v.Secret.SecretName == "pages" }), name == "TLS"; got != want {
				t.Errorf("the certificate is mounted: %t", got)
			}
			for _, role := range r.clusterRoles {
				if role.Name == "scute-ui" {
					want := []rbacv1.PolicyRule{
						{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}},
						{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}},
					}
					if diff := cmp.Diff(want, role.Rules); diff != "" {
						t.Errorf("the role (-want +got):\n%s", diff)
					}
					return
				}
			}
			t.Error("there is no role for the reviews")
		})
	}
}

// containerPort is the number of a port of the pod; 0 if it has none of the name.
func containerPort(pod corev1.PodSpec, name string) int32 {
	for _, p := range pod.Containers[0].Ports {
		if p.Name == name {
			return p.ContainerPort
		}
	}
	return 0
}

// TestPagesThatCannotWorkAreRefused by the schema.
func TestPagesThatCannotWorkAreRefused(t *testing.T) {
	for _, values := range [][]string{
		{"ui.plainHTTP=true"},
		{"ui.plainHTTP=true", "ui.hosts[0]=a.example", "ui.tlsSecretName=pages"},
		{"ui.port=80"},
		{"ui.port=8080"},
		{"ui.port=8081"},
		{"ui.sizeLimit=1"},
		{"ui.session=never"},
		{"ui.hosts[0]=https://a.example"},
		{"ui.audience=a"},
	} {
		if _, complaint := template(t, append(values, "ui.enabled=true")...); complaint == "" {
			t.Errorf("%v is rendered", values)
		}
	}
}

// TestNotesLeadToThePages by an address at which they are served: a port-forward asks for localhost, which names of the pages exclude.
func TestNotesLeadToThePages(t *testing.T) {
	for _, c := range []struct {
		values        []string
		has, hasNever string
	}{
		{nil, "http://localhost:8082", "https://"},
		{[]string{"ui.tlsSecretName=pages"}, "https://localhost:8082", "http://"},
		{[]string{"ui.tlsSecretName=pages", "ui.hosts[0]=scute.example.com"}, "https://scute.example.com", "localhost:"},
		{[]string{"ui.plainHTTP=true", "ui.hosts[0]=scute.example.com"}, "https://scute.example.com", "localhost:"},
	} {
		args := []string{"install", "scute", path, "--dry-run=client", "--set", "ui.enabled=true"}
		for _, value := range c.values {
			args = append(args, "--set", value)
		}
		notes, complaint := helm(t, args...)
		if _, about, ok := strings.Cut(notes, "The pages of the log are for"); complaint != "" || !ok || !strings.Contains(about, c.has) || strings.Contains(about, c.hasNever) {
			t.Errorf("%v: %s%s", c.values, complaint, about)
		}
	}
}
