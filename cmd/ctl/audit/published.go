package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/cmd/ctl/connect"
	"scute.dev/eventlog/backup"
	"scute.dev/eventlog/seal"
	"scute.dev/evidence"
)

// published contains the key and the checkpoints against which a log is verified.
type published struct {
	key seal.PublicKey
	// trusted is true if the auditor supplied the key.
	trusted bool
	// newest is the newest checkpoint, and signed its signed note. earlier contains all other
	// checkpoints.
	newest  seal.Checkpoint
	signed  []byte
	earlier []seal.Checkpoint
}

// published reads the key and the checkpoints from the files that the flags name. What no flag
// names is read from the cluster.
func (o *options) published(ctx context.Context) (*published, error) {
	checkpoint, err := o.checkpointFile()
	if err != nil {
		return nil, err
	}
	var fromCluster *corev1.ConfigMap
	if o.key == "" || checkpoint == "" {
		if o.Flags.Local {
			return nil, fmt.Errorf("logs of local runs are not sealed: only a daemon signs checkpoints; %s reads the whole log and checks that it is complete", o.Hint("", "log", "replay"))
		}
		if o.Flags.LogOnly() || o.export != "" {
			return nil, errors.New("--key and --checkpoint are required with --log, --nats or an export: keep them somewhere other than with the log")
		}
		if fromCluster, err = findConfigMap(ctx, o.Flags); err != nil {
			return nil, err
		}
	}
	p := &published{trusted: o.key != ""}
	text, err := o.keyText(fromCluster)
	if err != nil {
		return nil, err
	}
	if p.key, err = seal.ParsePublicKey(text); err != nil && p.trusted {
		return nil, fmt.Errorf("--key %s: %w; %s prints the key", o.key, err, o.Hint("", "audit", "key"))
	} else if err != nil {
		return nil, err
	}
	if checkpoint == "" {
		return p, p.read([]byte(fromCluster.Data[evidence.CheckpointField]))
	}
	notes, err := os.ReadFile(checkpoint)
	if err != nil {
		return nil, fmt.Errorf("reading the checkpoint: %w", err)
	}
	if err := p.read(notes); err != nil {
		return nil, fmt.Errorf("--checkpoint %s: %w; use a checkpoint that was signed with that key, for example the field checkpoint of the ConfigMap", checkpoint, err)
	}
	return p, nil
}

// checkpointFile returns the file of --checkpoint or, without that flag, the file with checkpoints
// in a backup. If the key is trusted, a checkpoint from an untrusted file cannot be forged, but it
// may be old and cover fewer commits.
func (o *options) checkpointFile() (string, error) {
	if o.checkpoint != "" || o.key == "" || !o.isBackup() {
		return o.checkpoint, nil
	}
	path := filepath.Join(o.export, backup.CheckpointsFile)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("the backup has no checkpoint: give --checkpoint: %w", err)
	}
	o.Env.Notef("The checkpoint comes from the backup: if commits at the end were removed together with newer checkpoints, this check does not notice it.")
	return path, nil
}

func (o *options) keyText(fromCluster *corev1.ConfigMap) (string, error) {
	switch {
	case o.key == "":
		return fromCluster.Data[evidence.KeyField], nil
	case strings.Contains(o.key, "+"):
		return o.key, nil
	}
	text, err := os.ReadFile(o.key)
	if err != nil {
		return "", fmt.Errorf("reading the public key: %w", err)
	}
	return string(text), nil
}

// read parses signed checkpoints and sets the newest one.
func (p *published) read(text []byte) error {
	for i, note := range seal.SplitNotes(text) {
		c, err := seal.OpenCheckpoint(bytes.TrimLeft(note, "\n"), p.key)
		if err != nil {
			return fmt.Errorf("checkpoint %d: %w", i+1, err)
		}
		if p.signed == nil || c.Size > p.newest.Size {
			p.earlier = append(p.earlier, p.newest)
			p.newest, p.signed = c, note
			continue
		}
		p.earlier = append(p.earlier, c)
	}
	if p.signed == nil {
		return errors.New("there is no checkpoint")
	}
	return nil
}

// Checkpoint returns the newest signed checkpoint that the cluster's daemon publishes.
func Checkpoint(ctx context.Context, flags *connect.Flags) ([]byte, error) {
	m, err := findConfigMap(ctx, flags)
	if err != nil {
		return nil, err
	}
	return []byte(m.Data[evidence.CheckpointField]), nil
}

func findConfigMap(ctx context.Context, flags *connect.Flags) (*corev1.ConfigMap, error) {
	cluster, err := flags.Cluster()
	if err != nil {
		return nil, err
	}
	var list corev1.ConfigMapList
	err = cluster.Client.List(ctx, &list, client.InNamespace(flags.ScuteNamespace), client.MatchingLabels{evidence.Label: evidence.LabelCheckpoint})
	switch {
	case err != nil:
		return nil, fmt.Errorf("looking for the checkpoint in namespace %s: %w", flags.ScuteNamespace, cluster.Explain(err))
	case len(list.Items) == 0:
		return nil, fmt.Errorf("no checkpoint is published in namespace %s: set --scute-namespace if the daemon is elsewhere, or enable seals (audit.enabled of the chart)", flags.ScuteNamespace)
	case len(list.Items) > 1:
		return nil, fmt.Errorf("namespace %s has %d ConfigMaps with checkpoints: give --key and --checkpoint", flags.ScuteNamespace, len(list.Items))
	}
	return &list.Items[0], nil
}
