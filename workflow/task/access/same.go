package access

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"scute.dev/internal/atomicfile"
)

// ownClusterFile is the name of a file in the run's directory that identifies the own cluster of a
// local run.
const ownClusterFile = "own-cluster.json"

// ownCluster is the cluster of a local run. UID is the UID of its namespace kube-system.
type ownCluster struct {
	UID    string `json:"uid"`
	Server string `json:"server"`
}

// CheckSameCluster returns an error if the local run in dir began on another cluster than the
// current one. It returns nil if the cluster cannot be read.
func (cs *Clusters) CheckSameCluster(ctx context.Context, dir string) error {
	if _, err := os.Stat(filepath.Join(dir, ownClusterFile)); err != nil {
		return nil //nolint:nilerr // the run has not begun
	}
	config, err := cs.Own()
	if err != nil {
		return nil //nolint:nilerr // the tasks return this error
	}
	_, err = connectLocal(ctx, config, dir)
	return err
}

// connectLocal connects a local run to its own cluster. It fails if this is not the cluster on
// which the run began: with another kubeconfig or context, the same names would denote other
// objects, and an undo would find nothing.
func connectLocal(ctx context.Context, config *rest.Config, dir string) (*Cluster, error) {
	own, err := connect(config, nil)
	if err != nil || dir == "" {
		return own, err
	}
	uid, err := own.Kube.NamespaceUID(ctx, metav1.NamespaceSystem)
	if err != nil {
		return own, nil //nolint:nilerr // later requests fail if the cluster is unreachable
	}
	path := filepath.Join(dir, ownClusterFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return own, writeOwnCluster(path, ownCluster{UID: uid, Server: config.Host})
	}
	var began ownCluster
	if err == nil {
		err = json.Unmarshal(data, &began)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the recorded cluster of the run: %w", err)
	}
	if began.UID != uid {
		return nil, fmt.Errorf("the run started on the cluster at %s, but %s is another cluster: continue it with the kubeconfig and the context with "+
			"which it started. "+
			"To continue it here, for example because the run changed nothing there or the cluster was restored, remove %s", began.Server, config.Host, path)
	}
	return own, nil
}

func writeOwnCluster(path string, own ownCluster) error {
	data, _ := json.Marshal(own) // strings can always be encoded
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = atomicfile.WriteBytes(path, data)
	}
	if err != nil {
		return fmt.Errorf("recording the cluster of the run: %w", err)
	}
	return nil
}
