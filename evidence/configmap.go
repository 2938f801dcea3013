package evidence

import (
	"context"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"

	"scute.dev/eventlog/seal"
)

// ConfigMap is a Destination that stores checkpoints in a ConfigMap in the management cluster.
type ConfigMap struct {
	Client typed.ConfigMapInterface
	Object string
}

// Name implements Destination.
func (c *ConfigMap) Name() string { return "ConfigMap " + c.Object }

// Last implements Destination.
func (c *ConfigMap) Last(ctx context.Context) ([]byte, error) {
	found, err := c.Client.Get(ctx, c.Object, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return []byte(found.Data[CheckpointField]), nil
}

// Publish implements Destination. It fails if another process has written the ConfigMap after this
// process read it.
func (c *ConfigMap) Publish(ctx context.Context, p Publication) error {
	data := map[string]string{
		CheckpointField: string(p.Signed), KeyField: string(p.Key), logField: p.LogID,
		sequenceField: strconv.FormatUint(p.Size, 10), timeField: p.At.UTC().Format(time.RFC3339),
	}
	found, err := c.Client.Get(ctx, c.Object, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = c.Client.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: c.Object, Labels: map[string]string{Label: LabelCheckpoint}}, Data: data,
		}, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	if _, err := checkPublication(p, []byte(found.Data[CheckpointField])); err != nil {
		return err
	}
	found.Data = data
	_, err = c.Client.Update(ctx, found, metav1.UpdateOptions{})
	return err
}

const keyField = "ed25519.pem"

// SecretKey reads the signing key for checkpoints from a Secret. If the Secret does not exist,
// SecretKey creates it with a new key, which never changes afterwards.
func SecretKey(ctx context.Context, client typed.SecretInterface, name string) (seal.Key, error) {
	found, err := client.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		if found, err = createKey(ctx, client, name); apierrors.IsAlreadyExists(err) {
			found, err = client.Get(ctx, name, metav1.GetOptions{}) // another replica has created it
		}
	}
	if err != nil {
		return seal.Key{}, fmt.Errorf("reading the key of the seals from Secret %s: %w", name, err)
	}
	key, err := seal.ParseKey(found.Data[keyField])
	if err != nil {
		return seal.Key{}, fmt.Errorf("reading the key of the seals from Secret %s, field %s: %w: it must be an ed25519 key, for example of `openssl genpkey -algorithm ed25519`",
			name, keyField, err)
	}
	return key, nil
}

func createKey(ctx context.Context, client typed.SecretInterface, name string) (*corev1.Secret, error) {
	key, err := seal.NewKey()
	if err != nil {
		return nil, err
	}
	text, err := key.PEM()
	if err != nil {
		return nil, err
	}
	return client.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Immutable: new(true), Data: map[string][]byte{keyField: text},
	}, metav1.CreateOptions{})
}

// Names of a label and of fields of the ConfigMap that the daemon publishes.
const (
	// Label is the label of the ConfigMap. Its value is LabelCheckpoint.
	Label           = "scute.dev/audit"
	LabelCheckpoint = "checkpoint"
	// CheckpointField contains the signed checkpoint, KeyField the public key, and sequenceField the
	// sequence of the last commit that the checkpoint covers.
	CheckpointField = "checkpoint"
	KeyField        = "key"
	logField        = "logID"
	sequenceField   = "sequence"
	timeField       = "publishedAt"
)
