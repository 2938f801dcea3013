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

// ownFile says in the folder of a local run which cluster is its own.
const ownFile = "own-cluster.json"

// ownCluster is the cluster on which a local run has begun to work. UID is that of its namespace kube-system.
type ownCluster struct {
	UID    string `json:"uid"`
	Server string `json:"server"`
}

// Same fails if a local run, whose folder is given, has begun to work on another cluster than the one that is its own now. It finds nothing wrong
// where the cluster cannot be asked.
func (cs *Clusters) Same(ctx context.Context, dir string) error {
	if _, err := os.Stat(filepath.Join(dir, ownFile)); err != nil {
		return nil //nolint:nilerr // it has not begun
	}
	config, err := cs.Own()
	if err != nil {
		return nil //nolint:nilerr // the tasks say that there is none
	}
	_, err = connectSame(ctx, config, dir)
	return err
}

// connectSame connects a local run to its own cluster, which must be the one on which it has begun: the kubeconfig of the operator, or its current
// context, may be another one when the run is resumed. Names would mean other objects there, and nothing would be left to undo.
func connectSame(ctx context.Context, config *rest.Config, dir string) (*Cluster, error) {
	own, err := connect(config, nil)
	if err != nil || dir == "" {
		return own, err
	}
	uid, err := own.Kube.NamespaceUID(ctx, metav1.NamespaceSystem)
	if err != nil {
		return own, nil //nolint:nilerr // it is away, or may not be asked: what follows says so, if it matters
	}
	path := filepath.Join(dir, ownFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return own, keepOwn(path, ownCluster{UID: uid, Server: config.Host})
	}
	var began ownCluster
	if err == nil {
		err = json.Unmarshal(data, &began)
	}
	if err != nil {
		return nil, fmt.Errorf("reading which cluster the run works on: %w", err)
	}
	if began.UID != uid {
		return nil, fmt.Errorf("the run has begun to work on the cluster at %s, and %s is another one: continue it with the kubeconfig and the context with which it began. "+
			"If it must continue here, for example because nothing was done there or the cluster was restored, remove %s", began.Server, config.Host, path)
	}
	return own, nil
}

func keepOwn(path string, own ownCluster) error {
	data, err := json.Marshal(own)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = atomicfile.WriteBytes(path, data)
	}
	if err != nil {
		return fmt.Errorf("keeping which cluster the run works on: %w", err)
	}
	return nil
}
