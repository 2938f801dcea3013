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

// Cluster says what workload cluster to make. The zero value of a number means 1 control plane and no worker.
type Cluster struct {
	Namespace, Name string
	ControlPlanes   int // machines; an odd number
	Workers         int // machines, in one MachineDeployment
	// Topology has the cluster managed by a ClusterClass, one per namespace, which is made if it is missing.
	Topology bool
	// MachineHealthCheck adds a health check for all machines (of the whole cluster, or two with Topology).
	MachineHealthCheck bool
	// Version of Kubernetes, v1.36.0 if empty.
	Version string
	// MaxSurge of the control plane's rollouts; nil leaves it to Cluster API, which allows one more machine.
	MaxSurge *int
	// CertificateExpiryDays has the control plane replace machines whose certificates expire so soon; 7 at least.
	CertificateExpiryDays int
	// FailureDomains for control planes. With Topology there are none: the class's provider knows of none in time.
	FailureDomains []string
	// ExternalEtcd has the control plane believe that etcd is somebody else's. Not with Topology.
	ExternalEtcd bool
	// Startup is how long the virtual machine of a Machine takes to start; a second if it is 0.
	Startup time.Duration
}

// Tiny is the smallest cluster that has everything a move has to carry: for tests that need many, or fast ones.
func Tiny(namespace, name string) Cluster {
	return Cluster{Namespace: namespace, Name: name, ControlPlanes: 1, Workers: 1, Topology: true}
}

//go:embed manifests/*.yaml
var manifests embed.FS

const (
	// A machine is ready within seconds; each step takes a moment, so that controllers see it in between.
	machineSpeed = `{vm: {provisioning: {startupDuration: %s}}, node: {provisioning: {startupDuration: 500ms}},` +
		` apiServer: {provisioning: {startupDuration: 500ms}}, etcd: {provisioning: {startupDuration: 500ms}}}`
	healthCheck = `{checks: {unhealthyNodeConditions: [{type: Ready, status: "False", timeoutSeconds: 300},` +
		` {type: Ready, status: Unknown, timeoutSeconds: 300}]}}`
)

// manifestValues are what the manifests refer to.
type manifestValues struct {
	Cluster
	Machine, HealthCheck string
}

// CreateCluster makes a workload cluster on this side and returns before it runs: see WaitAvailable.
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

// apply creates the objects of a manifest. Those of a class may be there already, from another cluster.
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
