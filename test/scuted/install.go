package scuted

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/test/testbed"
)

// Namespace is the namespace of the chart's release.
const Namespace = "scute-system"

// account is the chart's ServiceAccount. target is the one that Moves use on the other side.
const (
	account = "scute"
	target  = "scute-target"
)

// Installation is the chart installed on one management cluster.
type Installation struct {
	Side *testbed.Side
	// Kubeconfig is the kubeconfig of the chart's ServiceAccount. It has only the permissions that the chart grants.
	Kubeconfig string
	// Target is a kubeconfig for Moves to this side. Its account is bound to the chart's role for targets.
	Target []byte

	programs Programs
}

// Scutectl returns a command of scutectl with the administrator's kubeconfig.
func (in *Installation) Scutectl(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, in.programs.Ctl, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+in.Side.KubeconfigPath())
	return cmd
}

// Install renders the chart and applies it, as helm would, and creates tokens for its accounts.
func Install(ctx context.Context, side *testbed.Side, programs Programs, values ...string) (*Installation, error) {
	files, err := Render(programs.Chart, values...)
	if err != nil {
		return nil, err
	}
	admin := side.Client()
	fixed := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: target, Namespace: Namespace}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: target},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "scute-move-target"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: target, Namespace: Namespace}},
		},
	}
	for _, o := range fixed {
		if err := admin.Create(ctx, o); err != nil {
			return nil, fmt.Errorf("installing scute on %s: %w", side.Name(), err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := applyAll(ctx, admin, files[name]); err != nil {
			return nil, fmt.Errorf("installing %s on %s: %w", name, side.Name(), err)
		}
	}
	in := &Installation{Side: side, programs: programs, Kubeconfig: filepath.Join(side.Logs(), "scuted.kubeconfig")}
	_, kubeconfig, err := side.ServiceAccountConfig(ctx, Namespace, account)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(in.Kubeconfig, kubeconfig, 0o600); err != nil {
		return nil, fmt.Errorf("writing the daemon's kubeconfig: %w", err)
	}
	_, in.Target, err = side.ServiceAccountConfig(ctx, Namespace, target)
	return in, err
}

func applyAll(ctx context.Context, c client.Client, manifests string) error {
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifests), 4096)
	for {
		u := &unstructured.Unstructured{}
		err := decoder.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("decoding: %w", err)
		}
		if len(u.Object) == 0 {
			continue
		}
		if u.GetNamespace() == "" && namespaced(u.GetKind()) {
			u.SetNamespace(Namespace)
		}
		if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("helm"), client.ForceOwnership); err != nil {
			return fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err)
		}
	}
}

// namespaced reports whether a kind is namespaced. Helm sets the release's namespace for objects without one.
func namespaced(kind string) bool {
	switch kind {
	case "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding":
		return false
	default:
		return true
	}
}
