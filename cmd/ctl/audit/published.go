package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/cmd/ctl/connect"
	"scute.dev/eventlog/seal"
	"scute.dev/internal/audit"
)

// published is what a log is held against.
type published struct {
	key seal.PublicKey
	// trusted says that the auditor gave the key.
	trusted bool
	// newest of the checkpoints, as it was signed, and the earlier ones.
	newest  seal.Checkpoint
	signed  []byte
	earlier []seal.Checkpoint
}

// published reads the key and the checkpoints: from what the flags name, otherwise from the cluster.
func (o *options) published(ctx context.Context) (*published, error) {
	var fromCluster *corev1.ConfigMap
	if o.key == "" || o.checkpoint == "" {
		if o.Flags.LogAlone() || o.export != "" {
			return nil, errors.New("--key and --checkpoint are needed with --log, --nats and --export: what is published must not come from where the log is")
		}
		var err error
		if fromCluster, err = findConfigMap(ctx, o.Flags); err != nil {
			return nil, err
		}
	}
	p := &published{trusted: o.key != ""}
	text, err := o.keyText(fromCluster)
	if err != nil {
		return nil, err
	}
	if p.key, err = seal.ParsePublicKey(text); err != nil {
		return nil, err
	}
	if o.checkpoint == "" {
		return p, p.read([]byte(fromCluster.Data[audit.CheckpointField]))
	}
	notes, err := os.ReadFile(o.checkpoint)
	if err != nil {
		return nil, fmt.Errorf("reading the checkpoint: %w", err)
	}
	return p, p.read(notes)
}

func (o *options) keyText(fromCluster *corev1.ConfigMap) (string, error) {
	switch {
	case o.key == "":
		return fromCluster.Data[audit.KeyField], nil
	case strings.Contains(o.key, "+"):
		return o.key, nil
	}
	text, err := os.ReadFile(o.key)
	if err != nil {
		return "", fmt.Errorf("reading the public key: %w", err)
	}
	return string(text), nil
}

// read takes the newest of the checkpoints.
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

// findConfigMap finds what the daemon of the cluster publishes.
func findConfigMap(ctx context.Context, flags *connect.Flags) (*corev1.ConfigMap, error) {
	cluster, err := flags.Cluster()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, connect.CallTimeout)
	defer cancel()
	var list corev1.ConfigMapList
	err = cluster.Client.List(ctx, &list, client.InNamespace(flags.ScuteNamespace), client.MatchingLabels{audit.Label: audit.LabelCheckpoint})
	switch {
	case err != nil:
		return nil, fmt.Errorf("looking for the checkpoint in namespace %s: %w", flags.ScuteNamespace, cluster.Explain(err))
	case len(list.Items) == 0:
		return nil, fmt.Errorf("no checkpoint is published in namespace %s: is the daemon elsewhere (--scute-namespace), or does it not seal its log (audit.enabled of the chart)?", flags.ScuteNamespace)
	case len(list.Items) > 1:
		return nil, fmt.Errorf("namespace %s has %d ConfigMaps with checkpoints: give --key and --checkpoint", flags.ScuteNamespace, len(list.Items))
	}
	return &list.Items[0], nil
}
