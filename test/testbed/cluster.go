package testbed

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"text/template"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Cluster describes a workload cluster. The zero value has 1 control plane and no worker.
type Cluster struct {
	Namespace, Name string
	ControlPlanes   int // machines; an odd number
	Workers         int // machines, in one MachineDeployment
	// Topology uses a ClusterClass, one per namespace, which is created if it does not exist.
	Topology bool
	// MachineHealthCheck adds a health check for all machines. With Topology there are two: for the control plane and
	// for the workers.
	MachineHealthCheck bool
	// Version is the version of Kubernetes, v1.36.0 if empty.
	Version string
	// MaxSurge applies to rollouts of the control plane. If it is nil, Cluster API allows one more machine.
	MaxSurge *int
	// CertificateExpiryDays makes the control plane replace machines whose certificates expire within so many days. The
	// minimum is 7.
	CertificateExpiryDays int
	// FailureDomains are the failure domains of control planes. They cannot be combined with Topology, because the
	// class's provider would report them too late.
	FailureDomains []string
	// ExternalEtcd configures the control plane with an external etcd. It cannot be combined with Topology.
	ExternalEtcd bool
	// Startup is how long the virtual machine of a Machine takes to start; a second if it is 0.
	Startup time.Duration
}

// Tiny returns the smallest cluster that has every kind of object that a move copies, for tests that need many clusters
// or fast ones.
func Tiny(namespace, name string) Cluster {
	return Cluster{Namespace: namespace, Name: name, ControlPlanes: 1, Workers: 1, Topology: true}
}

//go:embed manifests/*.yaml
var manifests embed.FS

const (
	// A machine is ready within seconds, but each step takes long enough for controllers to observe it.
	machineSpeed = `{vm: {provisioning: {startupDuration: %s}}, node: {provisioning: {startupDuration: 500ms}},` +
		` apiServer: {provisioning: {startupDuration: 500ms}}, etcd: {provisioning: {startupDuration: 500ms}}}`
	healthCheck = `{checks: {unhealthyNodeConditions: [{type: Ready, status: "False", timeoutSeconds: 300},` +
		` {type: Ready, status: Unknown, timeoutSeconds: 300}]}}`
)

// manifestValues are the values of the manifests' templates.
type manifestValues struct {
	Cluster
	Machine, HealthCheck string
}

// CreateCluster creates a workload cluster on this side and returns before it runs: see WaitAvailable.
func (s *Side) CreateCluster(ctx context.Context, c Cluster) (*Workload, error) {
	if c.ControlPlanes == 0 {
		c.ControlPlanes = 1
	}
	if c.Version == "" {
		c.Version = "v1.36.0"
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.Namespace}}
	if err := s.client.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("creating cluster %s/%s: %w", c.Namespace, c.Name, err)
	}
	names := []string{"standalone"}
	if c.Topology {
		names = []string{"class", "topology"}
	}
	if c.ExternalEtcd {
		if err := s.externalEtcd(ctx, c); err != nil {
			return nil, fmt.Errorf("creating cluster %s/%s: %w", c.Namespace, c.Name, err)
		}
	}
	for _, name := range names {
		if err := s.apply(ctx, name, c); err != nil {
			return nil, fmt.Errorf("creating cluster %s/%s: %w", c.Namespace, c.Name, err)
		}
	}
	if len(c.FailureDomains) > 0 {
		if err := s.failureDomains(ctx, c); err != nil {
			return nil, fmt.Errorf("creating cluster %s/%s: %w", c.Namespace, c.Name, err)
		}
	}
	return s.bed.Workload(c.Namespace, c.Name), nil
}

// apply creates the objects of a manifest. The objects of a class may exist already, from another cluster.
func (s *Side) apply(ctx context.Context, name string, c Cluster) error {
	t, err := template.ParseFS(manifests, "manifests/"+name+".yaml")
	if err != nil {
		return fmt.Errorf("manifest %s: %w", name, err)
	}
	var content bytes.Buffer
	if err := t.Execute(&content, manifestValues{Cluster: c, Machine: fmt.Sprintf(machineSpeed, cmp.Or(c.Startup, time.Second)), HealthCheck: healthCheck}); err != nil {
		return fmt.Errorf("manifest %s: %w", name, err)
	}
	decoder := yaml.NewYAMLOrJSONDecoder(&content, 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("manifest %s: %w", name, err)
		}
		object.SetNamespace(c.Namespace)
		err := s.client.Create(ctx, object)
		if apierrors.IsAlreadyExists(err) && name == "class" {
			continue
		}
		if err != nil {
			return fmt.Errorf("creating %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
}
