package etcdsnapshot

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"filippo.io/age"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/internal/volume"
	"scute.dev/mover/schedule"
	schedules "scute.dev/mover/schedule/runner"
	"scute.dev/remediator"
)

// Taker takes snapshots. Its fields are set before use and not changed.
type Taker struct {
	// Policies reads them from the API server.
	Policies client.Reader
	// Observer writes a snapshot, and says which node's member it is from.
	Observer interface {
		Snapshot(ctx context.Context, cluster types.NamespacedName, nodes []string, to io.Writer) (node string, err error)
	}
	// Open opens the destination of a spec, of which it has nothing more than that and its namespace.
	Open func(ctx context.Context, spec *schedule.Spec) (schedules.Store, error)

	volume volume.Volume // of the daemon
}

// fieldError says what is wrong with which field of a policy, and what to do about it.
type fieldError struct{ schedule.Problem }

func (e *fieldError) Error() string  { return e.Text() }
func (e *fieldError) Remedy() string { return e.Next }

// ofPolicy is an error of a destination or of its encryption in the words of a policy.
func ofPolicy(err error) error {
	p := schedules.ProblemOf(err)
	if below, ok := strings.CutPrefix(p.Field, "spec."); ok {
		p.Field = "spec.etcd.snapshot." + below
	}
	p.Next = strings.TrimSuffix(p.Next, "; it is tried again")
	return &fieldError{p}
}

// Take stores a snapshot of the etcd that the facts are of, as their policy says. Each time it is another file, so that two processes never
// write the same one. What it returns has no Until. An error that a user can do something about has a method Remedy.
//
// It returns soon after the end of ctx. A volume may hang whatever ctx says: what was begun there is left behind, and nothing else is begun
// there before it has returned.
func (t *Taker) Take(ctx context.Context, f *remediator.Facts, a remediator.Action) (done remediator.SnapshotResult, err error) {
	spec, recipients, err := t.asked(ctx, f)
	if err != nil {
		return done, err
	}
	in := &t.volume
	if spec.Destination.Bucket != "" {
		in = new(volume.Volume) // whatever hangs there keeps no other from it
	}
	done, err = volume.Do(ctx, in, 0, func(func()) (remediator.SnapshotResult, error) { return t.take(ctx, f, a, spec, recipients) })
	switch {
	case !errors.Is(err, volume.ErrHangs):
		return done, err
	case ctx.Err() != nil:
		return done, ctx.Err()
	default:
		return done, ofPolicy(schedules.NewError(schedule.Problem{Field: "spec.destination.volume", Message: "it hangs: an earlier snapshot is still being written, although its time is over", Next: "look at the volume of scuted; or choose s3"}))
	}
}

// asked reads what the policy asks for.
func (t *Taker) asked(ctx context.Context, f *remediator.Facts) (*schedule.Spec, []age.Recipient, error) {
	policy := types.NamespacedName{Namespace: f.Owner.Namespace, Name: f.Policy.Name}
	var p v1alpha1.RepairPolicy
	if err := t.Policies.Get(ctx, policy, &p); err != nil {
		return nil, nil, fmt.Errorf("reading RepairPolicy %s: %w", policy, err)
	}
	if p.Unreadable.Spec != nil || p.Spec.Etcd == nil || p.Spec.Etcd.Snapshot == nil {
		return nil, nil, fmt.Errorf("RepairPolicy %s asks for no snapshot any more", policy)
	}
	encryption := p.Spec.Etcd.Snapshot.Encryption
	recipients, field, err := schedule.Recipients(encryption.Recipients)
	if err != nil {
		return nil, nil, ofPolicy(schedules.NewError(schedule.Problem{Field: field, Message: err.Error(), Next: "`age-keygen` makes a key and prints its public part"}))
	}
	if len(recipients) == 0 && !encryption.Plaintext { // a schema from before would have let it through
		return nil, nil, ofPolicy(schedules.NewError(schedule.Problem{Field: "spec.encryption", Message: "it names nobody who can read the snapshot", Next: "set recipients, or plaintext: true"}))
	}
	return &schedule.Spec{Namespace: policy.Namespace, Destination: schedule.DestinationOf(p.Spec.Etcd.Snapshot.Destination)}, recipients, nil
}

func (t *Taker) take(ctx context.Context, f *remediator.Facts, a remediator.Action, spec *schedule.Spec, recipients []age.Recipient) (done remediator.SnapshotResult, err error) {
	store, err := t.Open(ctx, spec)
	if err != nil {
		return done, ofPolicy(err)
	}
	defer store.Close()
	file, err := fileOf(spec, a.Value, len(recipients) > 0)
	if err != nil {
		return done, err
	}
	sweep(ctx, store, file)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sum := sha256.New()
	from, to := io.Pipe()
	took := make(chan error, 1)
	go func() {
		var err error
		done.Node, err = t.write(ctx, f, to, recipients)
		took <- err
		_ = to.CloseWithError(err) // io.EOF of nil
	}()
	bytes, stored := store.Write(ctx, file, io.TeeReader(from, sum))
	_ = from.CloseWithError(cmp.Or(stored, io.ErrClosedPipe)) // what is still written goes nowhere
	first := stored != nil && len(took) == 0                  // the store failed, and not because the snapshot ended
	if first {
		cancel() // a member that sends slowly is not waited for
	}
	switch err := <-took; {
	case err != nil && !first:
		return done, err
	case stored != nil:
		return done, ofPolicy(stored)
	}
	done.Place, done.Bytes, done.SHA256 = spec.Destination.Where(file), bytes, hex.EncodeToString(sum.Sum(nil))
	return done, nil
}

// write writes a snapshot, encrypted for the recipients if there are any.
func (t *Taker) write(ctx context.Context, f *remediator.Facts, to io.Writer, recipients []age.Recipient) (node string, err error) {
	cluster := types.NamespacedName{Namespace: f.Owner.Namespace, Name: f.Owner.Cluster}
	nodes := f.Nodes()
	if len(recipients) == 0 {
		return t.Observer.Snapshot(ctx, cluster, nodes, to)
	}
	sealed, err := age.Encrypt(to, recipients...)
	if err != nil {
		return "", err
	}
	if node, err = t.Observer.Snapshot(ctx, cluster, nodes, sealed); err != nil {
		return "", err
	}
	return node, sealed.Close()
}

// fileOf is the name of a snapshot at its destination, in the folder of its control plane: the time comes first, and the end is another one
// each time.
func fileOf(spec *schedule.Spec, name string, encrypted bool) (string, error) {
	const unique = 8
	name += "-" + strings.ToLower(rand.Text()[:unique]) + ".db"
	parts := []string{spec.Destination.Prefix, "etcd", spec.Namespace, name}
	if spec.Destination.Bucket == "" {
		parts = []string{spec.Namespace, spec.Destination.Folder, "etcd", name}
	}
	file := strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "/")
	if !fs.ValidPath(file) { // a schema from before would have let it through
		field := "spec.destination.volume.folder"
		if spec.Destination.Bucket != "" {
			field = "spec.destination.s3.prefix"
		}
		return "", ofPolicy(schedules.NewError(schedule.Problem{Field: field, Message: "it is no path below a folder", Next: "write names with / between them"}))
	}
	if encrypted {
		file += ".age"
	}
	return file, nil
}

// named is the name of a snapshot in its folder.
var named = regexp.MustCompile(`^(\d{8}T\d{6}Z)(-[a-z0-9]{8})?\.db(\.age)?$`) //nolint:gochecknoglobals // it is constant

// over is how long ago a snapshot was begun that nobody writes any more: longer than the longest deadline.
const over = 2 * time.Hour

// sweep removes what processes that died have left where a snapshot is about to be written. What cannot be removed is the next one's.
func sweep(ctx context.Context, in schedules.Store, file string) {
	folder, ok := in.(interface {
		Sweep(ctx context.Context, folder string, left func(name string) bool) error
	})
	begun := func(name string) (at time.Time) {
		if parts := named.FindStringSubmatch(name); parts != nil {
			at, _ = time.Parse(remediator.SnapshotTime, parts[1])
		}
		return at
	}
	if now := begun(path.Base(file)); ok && !now.IsZero() {
		_ = folder.Sweep(ctx, path.Dir(file), func(name string) bool {
			at := begun(name)
			return !at.IsZero() && now.Sub(at) > over
		})
	}
}
